"""Compiles one instance of a port to Tile IR, with the Rust driver.

    rust_ir --port port.rs --instances instances.json --instance SIGNATURE/ARCH --arch sm_90

A port that the Rust front end refuses is a result. What it writes:

- `kernel.tilebc`, `kernel.tileir`: byte code without debug information and its text; empty when refused
- `status.json`: `{"ok": true}` or `{"ok": false, "diagnostics": [...]}`, with `"refused": true` for a port
  that the translator refused before
- `locations.json`: the Rust line of each operation (0: none), what became of the bounds checks, launch checks
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilebuild import faults
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError, Span
from tilebuild.tileir.disassemble import InvalidByteCode, disassemble
from tilebuild.tools import build_driver, protocol
from tilebuild.tools.cargo import Cargo
from tilebuild.tools.line_map import LineMap

_NOTHING: dict[str, Any] = {"locations": [], "checks": {}, "launch_checks": []}


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="rust_ir")
    parser.add_argument("--port", required=True)
    parser.add_argument("--instances", required=True)
    parser.add_argument("--instance", required=True)
    parser.add_argument("--arch", required=True)
    parser.add_argument("--map", default="map.json")
    parser.add_argument("--out-dir", default=".")
    arguments = parser.parse_args(argv)
    out = Path(arguments.out_dir)
    port = Path(arguments.port)
    instance = json.loads(Path(arguments.instances).read_text())["instances"].get(arguments.instance)
    if instance is None or not port.read_bytes().strip():
        _write(out, b"", "", {"ok": False, "refused": True, "diagnostics": []}, _NOTHING)
        return 0
    byte_code, result = _run_driver(port, instance, arguments.arch)
    if not result.pop("ok"):
        diagnostic = _refusal(result, port, LineMap.read(Path(arguments.map)))
        _write(out, b"", "", {"ok": False, "diagnostics": [diagnostic.to_json()]}, _NOTHING)
        return 0
    try:
        text = disassemble(byte_code, protocol.tool_path("tileirdisasm"))
    except InvalidByteCode as error:
        diagnostic = Diagnostic(
            "the cutile compiler makes invalid Tile IR of this port", Blame.TOOLCHAIN, help=error.words
        )
        _write(out, b"", "", {"ok": False, "diagnostics": [diagnostic.to_json()]}, _NOTHING)
        return 0
    _write(out, byte_code, text, {"ok": True}, result)
    return 0


def _write(out: Path, byte_code: bytes, text: str, status: dict[str, Any], locations: dict[str, Any]) -> None:
    (out / "kernel.tilebc").write_bytes(byte_code)
    (out / "kernel.tileir").write_text(text)
    (out / "status.json").write_text(json.dumps(status) + "\n")
    (out / "locations.json").write_text(json.dumps(locations) + "\n")


def _run_driver(port: Path, instance: dict[str, Any], arch: str) -> tuple[bytes, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / name for name in ("instance.json", "byte_code", "result.json")}
        files["instance.json"].write_text(json.dumps(instance))
        command = [str(_driver()), "--port", str(port), "--arch", arch]
        for option, file in zip(("--instance", "--bytecode", "--result"), files.values(), strict=True):
            command += [option, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, env={})
        if done.returncode != 0:
            if fault := faults.said_in(done.stderr, "tilebuild-driver"):
                raise fault
            raise DiagnosticError(_crash(_driver(), done.returncode, done.stderr))
        result: dict[str, Any] = json.loads(files["result.json"].read_text())
        return files["byte_code"].read_bytes(), result


def _driver() -> Path:
    """The action BuildDriver has built it, unless its result came from a cache and the program was deleted
    since."""
    path = Path(protocol.tool_path("driver"))
    if path.is_file():
        return path
    ways = sorted(path.parent.glob("cargo-*.json"), key=lambda file: file.stat().st_mtime)
    return build_driver.ensure(Cargo.read(ways[-1] if ways else path.with_name("cargo.json")))


def _crash(driver: Path, status: int, errors: str) -> Diagnostic:
    fact = (
        errors.strip().removeprefix("tilebuild-driver: ").partition("\n")[0] or f"ended with status {status}"
    )
    help = f"if it goes on, the program may be damaged: remove {driver} and build again"
    return Diagnostic(f"the Rust driver failed: {fact}", Blame.TILEBUILD, help=help)


def _refusal(result: dict[str, Any], port: Path, lines: LineMap) -> Diagnostic:
    fact, _, rest = result["message"].strip().partition("\n")
    texts = port.read_text().splitlines()
    line = result["line"]
    source = texts[line - 1] if 0 < line <= len(texts) else ""
    return lines.diagnostic(
        f"the cutile compiler: {fact}", Span(port.name, line, result["column"]), source, rest
    )
