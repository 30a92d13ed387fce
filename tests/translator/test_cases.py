"""Golden Rust for small kernels, found by scanning the folder of cases; and a case for every operation."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.translator import case_file
from tilebuild.tileir.parse import parse
from tilebuild.tileir.tree import Entry
from tilebuild.translator.ops import OPS

CASES = sorted(case_file.FOLDER.glob("*.case"))

#: Operations of the table that no case shows, and why.
WITHOUT_CASE = {
    "break": "ends a block, as `while` cases show",
    "get_tensor_shape": "Python never makes it; ports of other front ends may",
    "ptr_to_int": "is refused; cuda.tile 1.7.0 has no spelling that makes it",
    "mulhii": "cuda.tile 1.7.0 has no spelling that makes it",
}

pytestmark = pytest.mark.skipif(shutil.which("rustfmt") is None, reason="rustfmt is not installed")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in case_file.tools().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_case(path: Path, tmp_path: Path) -> None:
    case = case_file.read(path)
    status = case_file.python_side(case, tmp_path)
    assert status["ok"], status
    made = dict(case_file.translated(case, rung, tmp_path) for rung in case.rungs)
    if os.environ.get("TILEBUILD_UPDATE_GOLDEN"):
        case.expected = made
        case.write()
    for head, text in made.items():
        assert text == case.expected.get(head), f"{path.name}: {head} (TILEBUILD_UPDATE_GOLDEN=1 rewrites it)"


def test_every_operation_has_a_case(tmp_path: Path) -> None:
    seen: set[str] = set()
    for path in CASES:
        folder = tmp_path / path.stem
        folder.mkdir()
        os.chdir(folder)
        case = case_file.read(path)
        case_file.python_side(case, folder)
        seen |= {o.name for o in _entry(folder / "s" / case.architecture).walk()}
    missing = set(OPS) - seen - set(WITHOUT_CASE)
    assert not missing, f"operations without a case: {', '.join(sorted(missing))}"
    stale = set(WITHOUT_CASE) & seen - {"break"}
    assert not stale, f"these have a case after all: {', '.join(sorted(stale))}"


def _entry(folder: Path) -> Entry:
    return parse((folder / "kernel.tileir").read_text())
