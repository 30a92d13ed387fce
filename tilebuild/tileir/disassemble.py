"""Byte code to text by the vendor's disassembler. Knows no operation."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError


class InvalidByteCode(Exception):
    """The disassembler refuses the byte code; `words` are its own."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


def disassemble(byte_code: bytes, tileirdisasm: str, *, locations: bool = False) -> str:
    """The text of a module. Raises `InvalidByteCode`, and `DiagnosticError` if the tool itself crashes."""
    with tempfile.TemporaryDirectory(prefix="tilebuild-") as folder:
        path = Path(folder, "kernel.tilebc")
        path.write_bytes(byte_code)
        command = [tileirdisasm, *(["-g"] if locations else []), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    words = done.stderr.strip().replace(str(path), path.name)
    if done.returncode < 0:
        fact = f"tileirdisasm was ended by signal {-done.returncode}"
        raise DiagnosticError(Diagnostic(fact, Blame.TOOLCHAIN, help=words))
    if done.returncode:
        raise InvalidByteCode(words or f"tileirdisasm ended with status {done.returncode}")
    return done.stdout
