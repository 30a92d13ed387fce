"""Assembles the byte code of one kernel for one architecture.

    assemble --arch sm_90

Reads `kernel.tilebc`. Writes `kernel.cubin`, the canonical cubin, and `assembly.json`: `{"ok": true,
…resources, "canonical": "aslr-off" | "16-runs"}` or `{"ok": false, "message": …}`. A kernel that the
assembler does not take is a result; so is empty byte code, which stands for a kernel that a front end
refused. A crash is no result: its input is kept for a bug report and named."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError
from tilebuild.tileir import assemble as assembler
from tilebuild.tileir import cubin
from tilebuild.tools import protocol

#: What a vendor tool gets to see of the environment: nothing that could change its answer.
TOOL_ENVIRONMENT: Mapping[str, str] = {"LC_ALL": "C"}


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="assemble")
    parser.add_argument("--arch", required=True)
    architecture = parser.parse_args(argv).arch
    byte_code = Path("kernel.tilebc").read_bytes()
    code, report = b"", {"ok": False, "message": "there is no byte code: the front end refused the kernel"}
    if byte_code:
        code, report = canonical(byte_code, protocol.tool_path("tileiras"), architecture)
    Path("kernel.cubin").write_bytes(code)
    Path("assembly.json").write_text(json.dumps(report, indent=1, sort_keys=True) + "\n")
    return 0


def canonical(byte_code: bytes, tileiras: str, architecture: str) -> tuple[bytes, dict[str, Any]]:
    """The cubin that stands for this byte code, and what is known of it."""
    how = "aslr-off"
    try:
        outcome = run(byte_code, tileiras, architecture, fixed_layout=True)
    except assembler.LayoutRefused:
        how = f"{assembler.RUNS}-runs"
        outcome = assembler.most_frequent(
            [run(byte_code, tileiras, architecture, fixed_layout=False) for _ in range(assembler.RUNS)]
        )
    if isinstance(outcome, assembler.Refusal):
        return b"", {"ok": False, "message": outcome.message}
    used = cubin.resources(outcome)
    return outcome, {"ok": True, "canonical": how, **vars(used)}


def run(
    byte_code: bytes, tileiras: str, architecture: str, *, fixed_layout: bool
) -> bytes | assembler.Refusal:
    """One run of the assembler; a crash becomes a diagnostic that names the saved input."""
    try:
        return assembler.assemble(
            byte_code, tileiras, architecture, fixed_layout=fixed_layout, environment=TOOL_ENVIRONMENT
        )
    except assembler.AssemblerCrash as crash:
        saved = _save(byte_code, architecture)
        raise DiagnosticError(
            Diagnostic(
                f"tileiras crashed for {architecture} ({crash})",
                Blame.TOOLCHAIN,
                help=f"its input is saved: tileiras --gpu-name {architecture} {saved}"
                + (f"\n{crash.output}" if crash.output else ""),
            )
        ) from crash


def _save(byte_code: bytes, architecture: str) -> Path:
    """Keeps the input of a crash outside the action's folder, which goes away."""
    folder = Path(os.environ.get("TILEBUILD_CRASHES") or Path("~/.cache/tilebuild/crashes").expanduser())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{sha256(byte_code).hexdigest()[:16]}.{architecture}.tilebc"
    path.write_bytes(byte_code)
    return path
