"""The tool `compare`: from the files of both sides to a verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tileir import kernels
from tests.tileir.conftest import tool
from tilebuild.tileir.disassemble import disassemble
from tilebuild.tools import assemble, compare
from tilebuild.verdict import Comparison


@pytest.fixture
def action(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEBUILD_TOOL_TILEIRAS", tool("tileiras"))
    return tmp_path


def side(name: str, byte_code: bytes, architecture: str = "sm_90") -> None:
    """Writes what the actions before `compare` make of one side."""
    Path("kernel.tilebc").write_bytes(byte_code)
    assemble.main(["--arch", architecture])
    Path("kernel.tilebc").rename(f"{name}.tilebc")
    Path("kernel.cubin").rename(f"{name}.cubin")
    Path("assembly.json").rename(f"{name}.assembly.json")
    text = disassemble(byte_code, tool("tileirdisasm")) if byte_code else ""
    Path(f"{name}.tileir").write_text(text)


def verdict(architecture: str = "sm_90") -> Comparison:
    assert compare.main(["--arch", architecture]) == 0
    return Comparison.from_json(json.loads(Path("comparison.json").read_text()))


@pytest.mark.parametrize("architecture", ["sm_90", "sm_100"])
def test_the_same_under_another_name(action: Path, architecture: str) -> None:
    side("python", kernels.byte_code(kernels.collatz), architecture)
    side("rust", kernels.byte_code(kernels.collatz, symbol="collatz_entry"), architecture)
    found = verdict(architecture)
    assert found.evidence == ("same-machine-code", "same-ir", "same-normal-form")
    assert (found.interface, found.flagged, found.first_difference) == ("same", False, None)
    assert found.sizes is not None
    assert found.sizes["python"] == found.sizes["rust"]


def test_another_program_is_different_at_a_place(action: Path) -> None:
    side("python", kernels.byte_code(kernels.gathered))
    side("rust", kernels.byte_code(kernels.counted))
    found = verdict()
    assert found.evidence == ("different",)
    assert found.interface == "different"
    assert found.first_difference is not None
    assert found.first_difference.fact


def test_a_refused_side_is_named(action: Path) -> None:
    side("python", kernels.byte_code(kernels.collatz))
    side("rust", b"")
    found = verdict()
    assert found.evidence == ("different",)
    assert found.first_difference is not None
    assert found.first_difference.fact == "Rust's front end refused the kernel"
