"""Every case is the same program: its Rust, compiled and assembled, against its Python. Slow, needs the
built driver."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import chdir
from pathlib import Path

import pytest

from tests.translator import case_file
from tilebuild import toolchain
from tilebuild.tools import assemble, compare, rust_ir

CASES = sorted(case_file.FOLDER.glob("*.case"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("cargo") is None, reason="Rust is not installed"),
]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in case_file.tools().items():
        monkeypatch.setenv(name, value)
    for name in ("driver", "tileiras"):
        monkeypatch.setenv(f"TILEBUILD_TOOL_{name.upper()}", str(toolchain.tool(name).path))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_evidence(path: Path, tmp_path: Path) -> None:
    """The headline of each rung, and how the programs relate, are those that the case file notes."""
    case = case_file.read(path)
    case_file.python_side(case, tmp_path)
    python = tmp_path / "s" / case.architecture
    _assemble(python, case.architecture)
    found: list[str] = []
    for rung in case.rungs:
        head, _ = case_file.translated(case, rung, tmp_path)
        if head.startswith("rust"):
            found.append(f"{rung}: {relations(python, tmp_path / rung, case.architecture)}")
    evidence = "\n".join(found)
    if os.environ.get("TILEBUILD_UPDATE_GOLDEN"):
        case.evidence = evidence
        case.write()
    assert evidence == case.evidence


def _assemble(folder: Path, architecture: str) -> None:
    with chdir(folder):
        assemble.main(["--arch", architecture])


def relations(python: Path, rust: Path, architecture: str) -> str:
    """`same-machine-code, same-normal-form`: all relations that hold, best first, and the interface."""
    place = ["--port", "port.rs", "--instances", "instances.json", "--instance", f"s/{architecture}"]
    with chdir(rust):
        rust_ir.main([*place, "--arch", architecture])
    status = json.loads((rust / "status.json").read_text())
    if not status["ok"]:
        return f"does not compile: {status['diagnostics'][0]['fact'].splitlines()[0]}"
    _assemble(rust, architecture)
    both = rust / "both"
    both.mkdir()
    for side, folder in (("python", python), ("rust", rust)):
        for name in ("tilebc", "tileir", "cubin"):
            shutil.copy(folder / f"kernel.{name}", both / f"{side}.{name}")
        for name in ("assembly.json", "status.json"):
            shutil.copy(folder / name, both / f"{side}.{name}")
    with chdir(both):
        compare.main(["--arch", architecture])
    result = json.loads((both / "comparison.json").read_text())
    return ", ".join([*result["evidence"], f"interface {result['interface']}"])
