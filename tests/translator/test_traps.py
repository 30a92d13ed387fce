"""What cutile 0.5.0 gets wrong without a word: the obvious spelling is another program than Python's, and is
found to be; the translator's is the same.

A case in `traps` is one of the translator whose other sections are the obvious spellings:

    --- naive RUNG
    - what the translator writes
    + what one would write instead
    --- facts RUNG
    {"spec_args": …}    what one would tell the compiler instead
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from tests.translator import case_file
from tests.translator.test_evidence import relations
from tilebuild import toolchain
from tilebuild.tools import assemble
from tilebuild.tools.rust_ir import main as rust_ir

FOLDER = Path(__file__).parent / "traps"
CASES = sorted(FOLDER.glob("*.case"))

#: Functions of cutile that are declared safe and check nothing.
UNSOUND = ("load_view_tko(", "load_like(", "load_tile_like(")


_OTHER_GENERATION = {"CUTILE_JIT_DEBUG": "full", "CUTILE_JIT_OPT_LEVEL": "0", "CUDA_RUST_DEBUG": "full"}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in case_file.tools().items():
        monkeypatch.setenv(name, value)
    for name in ("driver", "tileiras"):
        monkeypatch.setenv(f"TILEBUILD_TOOL_{name.upper()}", str(toolchain.tool(name).path))
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cargo") is None, reason="Rust is not installed")
@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_the_obvious_spelling_is_found(path: Path, tmp_path: Path) -> None:
    case = case_file.read(path)
    assert case_file.python_side(case, tmp_path)["ok"]
    python = tmp_path / "s" / case.architecture
    with chdir(python):
        assemble.main(["--arch", case.architecture])
    sections = _sections(path)
    for rung in {head.split()[1] for head, _ in sections}:
        head, text = case_file.translated(case, rung, tmp_path)
        assert head == f"rust {rung}", text
        found = relations(python, tmp_path / rung, case.architecture)
        assert found == "same-machine-code, same-normal-form, interface same"
    for number, (head, body) in enumerate(sections):
        folder = tmp_path / f"naive{number}"
        _write_naive(tmp_path / head.split()[1], folder, head, body)
        found = relations(python, folder, case.architecture)
        # Where the machine code happens to be the same, the programs are still told apart.
        assert "does not compile" not in found, f"{head}: {found}"
        assert "same-normal-form" not in found, f"{head}: {found}"


def _sections(path: Path) -> list[tuple[str, str]]:
    parts = path.read_text().split("\n--- ")
    pairs = [(head, body) for head, _, body in (part.partition("\n") for part in parts)]
    found = [(head, body) for head, body in pairs if head.startswith(("naive ", "facts "))]
    assert found, f"{path.name} has no obvious spelling"
    return found


def _write_naive(ours: Path, folder: Path, head: str, body: str) -> None:
    """The port in `ours` with the obvious spelling in place of the translator's."""
    shutil.copytree(ours, folder, ignore=shutil.ignore_patterns("both"))
    port, instances = folder / "port.rs", folder / "instances.json"
    if head.startswith("facts"):
        data = json.loads(instances.read_text())
        for instance in data["instances"].values():
            _update(instance, json.loads(body))
        instances.write_text(json.dumps(data))
        return
    old, new = (
        " ".join(line[2:] for line in body.splitlines() if line.startswith(sign)) for sign in ("- ", "+ ")
    )
    text = _flat(port.read_text())
    assert old in text, f"the translator does not write {old!r}"
    port.write_text(text.replace(old, new, 1))


def _update(target: dict[str, Any], change: Mapping[str, Any]) -> None:
    for key, value in change.items():
        if isinstance(value, dict):
            _update(target[key], value)
        else:
            target[key] = value


def _flat(text: str) -> str:
    """Rust text without comments, on one line, so that it is not rustfmt that decides what is found."""
    code = " ".join(line.strip() for line in text.splitlines() if not line.strip().startswith("//"))
    return re.sub(r",?\s+\)", ")", re.sub(r"\(\s+", "(", code))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cargo") is None, reason="Rust is not installed")
@pytest.mark.usefixtures("environment")
def test_how_code_is_generated_does_not_depend_on_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """cutile takes its optimisation level from variables, and from the profile that it was built with."""
    case = case_file.read(CASES[0])
    case_file.python_side(case, tmp_path)
    case_file.translated(case, "typed", tmp_path)
    place = ["--port", "port.rs", "--instances", "instances.json", "--instance", f"s/{case.architecture}"]
    texts = []
    with chdir(tmp_path / "typed"):
        for values in ({}, _OTHER_GENERATION):
            for name, value in values.items():
                monkeypatch.setenv(name, value)
            rust_ir([*place, "--arch", case.architecture])
            texts.append(Path("kernel.tilebc").read_bytes())
    assert texts[0]
    assert texts[0] == texts[1]


def test_functions_that_check_nothing_are_not_called() -> None:
    """Machine code cannot tell: it is the same with and without a check that a caller should have made."""
    cases = [case_file.read(path) for path in case_file.FOLDER.glob("*.case")]
    text = "\n".join(text for case in cases for text in case.expected.values())
    assert "fn " in text
    assert not {name for name in UNSOUND if re.search(rf"(?<![\w.]){re.escape(name)}", text)}
