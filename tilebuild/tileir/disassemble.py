"""Byte code to text by the vendor's disassembler. Knows no operation."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tilebuild import faults
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError


def disassemble(byte_code: bytes, tileirdisasm: str, *, locations: bool = False) -> str:
    """The text of a module. Raises `DiagnosticError` with the tool's own words if it refuses."""
    with tempfile.TemporaryDirectory(prefix="tilebuild-") as folder:
        path = Path(folder, "kernel.tilebc")
        path.write_bytes(byte_code)
        command = [tileirdisasm, *(["-g"] if locations else []), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        if fault := faults.said_in(done.stderr, "tileirdisasm"):
            raise fault
        raise DiagnosticError(
            Diagnostic(
                "tileirdisasm cannot read this byte code",
                Blame.TOOLCHAIN,
                help=done.stderr.strip().replace(str(path), path.name) or f"exit status {done.returncode}",
            )
        )
    return done.stdout
