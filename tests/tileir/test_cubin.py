"""Assembling is repeatable, crashes are no results, and cubins are compared without their names."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from tests.tileir import kernels
from tests.tileir.conftest import tool
from tilebuild.diagnostics import DiagnosticError
from tilebuild.tileir import cubin
from tilebuild.tools import assemble


@pytest.fixture
def action(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEBUILD_TOOL_TILEIRAS", tool("tileiras"))
    monkeypatch.setenv("TILEBUILD_CRASHES", str(tmp_path / "crashes"))
    return tmp_path


def run(folder: Path, byte_code: bytes) -> dict[str, object]:
    (folder / "kernel.tilebc").write_bytes(byte_code)
    assert assemble.main(["--arch", "sm_90"]) == 0
    report: dict[str, object] = json.loads((folder / "assembly.json").read_text())
    return report


def test_a_kernel_is_assembled_to_the_same_cubin_again(action: Path) -> None:
    byte_code = kernels.byte_code(kernels.collatz)
    report = run(action, byte_code)
    first = (action / "kernel.cubin").read_bytes()
    assert report["ok"]
    assert report["registers"] == cubin.resources(first).registers > 0
    assert report["text_bytes"] == cubin.resources(first).text_bytes > 0
    run(action, byte_code)
    assert (action / "kernel.cubin").read_bytes() == first


def test_the_symbol_does_not_matter(action: Path) -> None:
    byte_code = kernels.byte_code(kernels.collatz)
    run(action, byte_code)
    one = (action / "kernel.cubin").read_bytes()
    run(action, kernels.byte_code(kernels.collatz, symbol="another_name"))
    other = (action / "kernel.cubin").read_bytes()
    assert one != other
    assert cubin.machine_code(one) == cubin.machine_code(other)
    assert cubin.difference(cubin.machine_code(one), cubin.machine_code(other)) == ""
    assert cubin.host_program(one) == cubin.host_program(other) != {}


def test_another_program_is_another_machine_code(action: Path) -> None:
    run(action, kernels.byte_code(kernels.collatz))
    one = cubin.machine_code((action / "kernel.cubin").read_bytes())
    run(action, kernels.byte_code(kernels.counted))
    other = cubin.machine_code((action / "kernel.cubin").read_bytes())
    assert cubin.difference(one, other).startswith(".text.@")


def test_a_refusal_is_a_result_without_paths(action: Path) -> None:
    report = run(action, kernels.byte_code(kernels.collatz)[:200])
    assert not report["ok"]
    assert "error" in str(report["message"])
    assert str(action) not in str(report["message"])
    assert (action / "kernel.cubin").read_bytes() == b""


def test_a_refused_front_end_is_a_result(action: Path) -> None:
    assert not run(action, b"")["ok"]


def test_a_crash_is_saved_and_never_a_result(action: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = action / "crashing"
    script.write_text("#!/bin/sh\nkill -SEGV $$\n")
    os.chmod(script, stat.S_IRWXU)
    monkeypatch.setenv("TILEBUILD_TOOL_TILEIRAS", str(script))
    with pytest.raises(DiagnosticError, match=r"tileiras crashed for sm_90 \(signal 11\)"):
        run(action, b"byte code")
    (saved,) = (action / "crashes").iterdir()
    assert saved.read_bytes() == b"byte code"
    assert not (action / "assembly.json").exists()


def test_damaged_cubins_are_refused() -> None:
    with pytest.raises(cubin.NotACubin):
        cubin.machine_code(b"\x7fELF\x02\x01" + b"\0" * 100)
    with pytest.raises(cubin.NotACubin):
        cubin.resources(b"")
