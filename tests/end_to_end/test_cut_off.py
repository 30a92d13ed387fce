"""Which stages an edit of a kernel runs again. The real tools on one small operator; counts are exact."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.end_to_end.kernels import KernelSpace
from tilebuild.cache.sealed import unseal

pytestmark = pytest.mark.slow

SIGNATURES = 2


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> KernelSpace:
    space = KernelSpace(tmp_path_factory.mktemp("kernels"))
    space.fill()
    first = space.stages()
    assert first["PythonIr"] == SIGNATURES
    assert first["CpuTest"] == 2
    space.rungs = first["Translate"]
    return space


@pytest.fixture
def space(built: KernelSpace) -> Iterator[KernelSpace]:
    """The built workspace; whatever the test edits is put back."""
    texts = {path: path.read_text() for path in (built.root / "k").iterdir()} | {
        built.root / "tilebuild.toml": (built.root / "tilebuild.toml").read_text()
    }
    yield built
    for path, text in texts.items():
        path.write_text(text)


EDITS: dict[str, Callable[[KernelSpace], None]] = {
    "a comment": lambda space: space.edit("    block =", "    # which block this is\n    block ="),
    "a docstring": lambda space: space.edit("c = 2 a + b.", "Twice a, and b."),
    "a local name": lambda space: space.edit("right", "second"),
    "empty lines": lambda space: space.edit("import cuda.tile as ct\n", "import cuda.tile as ct\n\n\n"),
    "an unused helper": lambda space: space.edit("    return x\n", "    return (x, x)\n"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_that_leaves_the_ir_alone_stops_at_rust_ir(space: KernelSpace, name: str) -> None:
    """Both front ends look, on each rung that is tried, and nobody assembles or tests."""
    EDITS[name](space)
    allowed = {
        "PythonIr": SIGNATURES,
        "Translate": space.rungs,
        "CargoCheck": space.rungs,
        "RustIr": SIGNATURES * space.rungs,
        "PublishPort": 1,  # the Rust text may carry the comment
        "Judge": space.rungs,  # a rung that was refused says at which line of Python
        "Choose": 1,
        "Summarize": 1,
    }
    ran = space.stages()
    assert {stage: count for stage, count in ran.items() if count > allowed.get(stage, 0)} == {}


def test_an_untouched_kernel_runs_nothing(space: KernelSpace) -> None:
    assert space.stages() == {}
    assert space.stages("--no-workers") == {}


def test_a_changed_constant_runs_everything_of_its_signatures(space: KernelSpace) -> None:
    space.edit("const(128)", "const(64)", "k/BUILD")
    ran = space.stages()
    assert ran["PythonIr"] == SIGNATURES
    assert ran["Assemble"] >= 2 * SIGNATURES
    assert ran["Compare"] >= SIGNATURES
    assert ran["CpuTest"] == 2


def test_a_changed_computation_runs_everything(space: KernelSpace) -> None:
    space.edit("left + left + right", "left + right + left")
    ran = space.stages()
    assert ran["PythonIr"] == SIGNATURES
    assert ran["CpuTest"] == 2


def test_a_case_with_a_known_signature_runs_one_test(space: KernelSpace) -> None:
    space.edit("(1, 256)", "(1, 256, 512)", "k/BUILD")
    assert space.stages() == {"CpuTest": 1, "Summarize": 1}


def test_a_changed_reference_runs_tests_only(space: KernelSpace) -> None:
    space.edit("2 * a", "a + a", "k/reference.py")
    ran = space.stages()
    assert set(ran) <= {"CpuTest", "Summarize"}
    assert ran["CpuTest"] == 2


def test_an_added_architecture_runs_its_column(space: KernelSpace) -> None:
    space.write("tilebuild.toml", 'architectures = ["sm_90", "sm_120"]\n')
    ran = space.stages()
    assert ran["PythonIr"] == SIGNATURES
    assert ran["Assemble"] <= SIGNATURES * (1 + space.rungs)
    assert ran["Compare"] <= SIGNATURES * space.rungs
    assert "CpuTest" not in ran


@pytest.mark.parametrize("options", [("--no-workers",), ("--no-sandbox",), ("--no-workers", "--no-sandbox")])
def test_fresh_processes_and_free_ones_make_the_same(
    built: KernelSpace, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """As confined forks of the warm worker: equal keys and equal digests."""
    fresh = KernelSpace(tmp_path)
    fresh.fill()
    fresh.stages(*options)
    assert _results(built) >= _results(fresh)
    assert len(_results(fresh)) > 10


@pytest.mark.parametrize("path", ["helpers/table.txt", "{root}/helpers/table.txt"])
def test_a_kernel_that_reads_an_undeclared_file(space: KernelSpace, path: str) -> None:
    space.write("helpers/table.txt", "3")
    read = f"open({path.format(root=space.root)!r}).read()"
    space.edit("import cuda.tile as ct\n", f"import cuda.tile as ct\n\nTABLE = {read}\n")
    done = space.run("build", "//k:op")
    assert done.code == 1
    assert "k/op.py:4:9: kernel error: k/op.py reads helpers/table.txt, which is not declared" in done.err
    assert "help: declare it: `data` of a tile_library in `deps`" in done.err
    library = 'tile_library(name = "table", data = ["table.txt"], visibility = ["//visibility:public"])'
    space.write("helpers/BUILD", library)
    space.edit('name = "op",', 'name = "op", deps = ["//helpers:table"],', "k/BUILD")
    assert space.run("build", "//k:op").code == (1 if path.startswith("{") else 0)


def test_a_reference_that_reads_an_undeclared_file(space: KernelSpace) -> None:
    space.write("helpers/table.txt", "2")
    space.edit("2 * a", "float(open('helpers/table.txt').read()) * a", "k/reference.py")
    done = space.run("build", "//k:op")
    assert done.code == 1
    assert "k/reference.py reads helpers/table.txt, which is not declared" in done.err
    assert "have `inputs` make them" in done.err


def _results(space: KernelSpace) -> set[tuple[str, str]]:
    """Key and content of every result in the store, without times."""
    found = set()
    for file in (space.folder / "store").rglob("ac/*/*"):
        entry = unseal(file.read_bytes())
        found.add((entry["key"], json.dumps(entry["outputs"])))
    return found
