"""The driver makes the body of a general reduction of the statements before it, or says why it cannot."""

from __future__ import annotations

import json
import shutil
from contextlib import chdir
from pathlib import Path

import pytest

from tests.translator import case_file
from tilebuild import toolchain
from tilebuild.tools.rust_ir import main as rust_ir

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("cargo") is None, reason="Rust is not installed"),
]


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a port with one running sum."""
    for name, value in case_file.tools().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TILEBUILD_TOOL_DRIVER", str(toolchain.tool("driver").path))
    monkeypatch.chdir(tmp_path)
    case_file.python_side(case_file.read(case_file.FOLDER / "running_sum.case"), tmp_path)
    case_file.translated(case_file.read(case_file.FOLDER / "running_sum.case"), "typed", tmp_path)
    return tmp_path / "typed"


def _message(port: Path) -> str:
    place = ["--port", "port.rs", "--instances", "instances.json", "--instance", "s/sm_90", "--arch", "sm_90"]
    with chdir(port):
        rust_ir(place)
    status = json.loads((port / "status.json").read_text())
    return "" if status["ok"] else str(status["diagnostics"][0]["fact"])


def _change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_ahead_of_time(port: Path) -> None:
    assert _message(port) == ""


def test_a_launch_cannot_compile_it(port: Path) -> None:
    _change(port / "instances.json", '"ahead_of_time": true,', "")
    assert "invalid Tile IR" in _message(port)


def test_one_element_twice(port: Path) -> None:
    _change(port / "port.rs", "(left, right), sum)", "(left, left), sum)")
    assert "no constant of its own" in _message(port)


def test_a_combiner_that_is_read_behind_the_call(port: Path) -> None:
    _change(port / "port.rs", ".store(running,", ".store(running + broadcast_scalar(sum, shape![16, 16]),")
    assert "a combiner reaches outside itself" in _message(port)
