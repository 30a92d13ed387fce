"""One operator from its BUILD file to a proven port, with the real tools: what is said, shown and refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.end_to_end.kernels import KernelSpace

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for all tests of this file: each builds only what it changes."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def space(tmp_path: Path, store: Path) -> KernelSpace:
    found = KernelSpace(tmp_path)
    (tmp_path / "store").symlink_to(store)
    found.fill()
    return found


def test_the_verdict_is_on_the_screen(space: KernelSpace) -> None:
    out = space.ok("build", "//k:op").out
    assert "//k:op  ok" in out
    assert "same-machine-code ×2" in out
    assert "cpu test: 2 passed" in out
    assert out.splitlines()[-1].startswith("build: 1 target ok")


def test_the_verdict_is_a_file(space: KernelSpace) -> None:
    space.ok("build", "//k:op")
    verdict = json.loads(space.read("k/op/verdict.json"))
    assert verdict["schema"] == 1
    assert verdict["ok"] is True
    assert verdict["kernels"][0]["kernel"] == "double_add"


def test_less_proof_on_demand(space: KernelSpace) -> None:
    assert "cpu test" not in space.ok("build", "//k:op", "--verify=compare").out
    assert "same-machine-code" not in space.ok("build", "//k:op", "--verify=none").out


def test_show(space: KernelSpace) -> None:
    space.ok("build", "//k:op")
    assert "double_add" in space.ok("show", "//k:op", "--rust").out
    assert space.ok("show", "//k:op", "--ir").out.count("entry @double_add") == 2 * 2
    assert "cubin of" in space.ok("show", "//k:op", "--sass").out
    assert space.ok("show", "//k:op", "--diff").out
    assert space.run("show", "//k:op", "--kernel", "nope").code == 7


def test_show_of_what_is_not_built(space: KernelSpace) -> None:
    space.edit("left + left", "left * left")
    done = space.run("show", "//k:op", "--ir")
    assert done.code == 7
    assert "tilebuild build //k:op" in done.err


def test_tests_pass_and_are_cached(space: KernelSpace) -> None:
    assert "PASSED  cpu test: 2 passed" in space.ok("test", "//k:op").out
    (space.root / "k/BUILD").touch()
    assert "(cached) PASSED" in space.ok("test", "//k/...").out


def test_a_wrong_reference_fails_the_test(space: KernelSpace) -> None:
    space.edit("2 * a", "3 * a", "k/reference.py")
    done = space.run("test", "//k:op")
    assert done.code == 3, done.text
    assert "FAILED //k:op.cpu_test" in done.out
    assert space.run("build", "//k:op").code == 1
    assert space.run("build", "//k:op", "--verify=compare").code == 0


def test_a_port_that_must_be_safer(space: KernelSpace) -> None:
    verdict = space.events("build", "--json", "//k:op")[-1]["targets"][0]["verdict"]
    style = verdict["kernels"][0]["style"]
    assert space.run("build", "//k:op", f"--style={style}").code == 0
    assert space.run("build", "//k:op", "--style=safe").code == (0 if style == "safe" else 1)


def test_a_kernel_that_python_refuses(space: KernelSpace) -> None:
    space.edit("left + left + right", "left.no_such_method()")
    done = space.run("build", "//k:op")
    assert done.code == 1
    line = (
        (space.root / "k/op.py")
        .read_text()
        .splitlines()
        .index("    ct.store(c, index=(block,), tile=left.no_such_method())")
    )
    assert f"k/op.py:{line + 1}:" in done.err, done.text
    assert "no_such_method" in done.err
    assert "FAILED //k:op" in done.out
    assert "Traceback" not in done.text


def test_a_kernel_that_does_not_exist(space: KernelSpace) -> None:
    space.edit('kernel = "double_add"', 'kernel = "dobule_add"', "k/BUILD")
    space.edit('{"double_add"', '{"dobule_add"', "k/BUILD")
    done = space.run("build", "//k:op")
    assert done.code in (1, 7)
    assert "dobule_add" in done.err
    assert "Traceback" not in done.text


def test_a_syntax_error_in_the_kernel(space: KernelSpace) -> None:
    space.edit("block = ct.bid(0)", "block = ct.bid(0")
    done = space.run("build", "//k:op")
    assert done.code == 1
    assert "k/op.py:" in done.err
    assert "Traceback" not in done.text


def test_a_missing_tool_is_one_error_with_its_fix(space: KernelSpace) -> None:
    done = space.run("build", "//k:op", environment={"PATH": "/nonexistent", "HOME": str(space.folder)})
    assert done.code == 36, done.text
    assert "toolchain error" in done.err
    assert "help:" in done.err
    assert "Traceback" not in done.text


def test_why_after_an_edit(space: KernelSpace) -> None:
    space.ok("build", "//k:op")
    space.edit("left + left", "right + left")
    out = space.ok("why", "//k:op").out
    assert "PythonIr" in out
    assert "input k/op.py changed" in out


def test_no_file_of_the_users_folder_enters_a_result(space: KernelSpace) -> None:
    """Ports and verdicts are the same wherever the workspace lies."""
    space.ok("build", "//k:op")
    for path in (space.root / "tilebuild-out").rglob("*"):
        if path.is_file() and ".tilebuild" not in path.parts:
            assert os.fsencode(space.folder) not in path.read_bytes(), path
