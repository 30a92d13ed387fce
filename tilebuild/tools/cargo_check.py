"""Has rustc, clippy and rustfmt judge a port: `-D warnings`, default formatting.

    cargo_check --port port.rs --kernel NAME

A port that they refuse is a result: `check.json` holds `{"ok": true}`, or `{"ok": false, "diagnostics":
[...]}`, or `{"ok": false, "refused": true}` for an empty port.

The port becomes the library of a crate with the dependencies, the lock file and the profile of the driver,
and cargo *builds* it with clippy in the place of rustc. `cargo clippy` would do the same with `cargo check`
and compile every dependency a second time (over two minutes); this way all that cargo compiles here is the
port.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tilebuild import faults
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError, Span
from tilebuild.tools import protocol
from tilebuild.tools.cargo import Cargo
from tilebuild.tools.line_map import LineMap

_EDITION = "2024"
#: How clippy-driver gets its options, as `cargo clippy` passes them.
_DENY_WARNINGS = "-Dwarnings__CLIPPY_HACKERY__"
_FOLDER = "checked-port"
_PACKAGE = "tilebuild-driver"  # the name in the lock file
_LIBRARY = f"""
[lib]
name = "port"
path = "port.rs"

[profile.release.package.{_PACKAGE}]
opt-level = 0
"""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="cargo_check")
    parser.add_argument("--port", required=True)
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--map", default="map.json")
    parser.add_argument("--out", default="check.json")
    arguments = parser.parse_args(argv)
    Path(arguments.out).write_text(json.dumps(_check(arguments)) + "\n")
    return 0


def _check(arguments: argparse.Namespace) -> dict[str, Any]:
    port = Path(arguments.port)
    if not port.exists() or not port.read_bytes().strip():
        return {"ok": False, "refused": True}
    cargo = Cargo.read(Path(protocol.tool_path("cargo")))
    lines = LineMap.read(Path(arguments.map))
    name = f"{arguments.kernel}.rs"
    text = port.read_text()
    # What rustc refuses may not even parse: rustfmt would only repeat it.
    found = [*_rustc_and_clippy(cargo, text, name, lines)] or [*_rustfmt(cargo, text, name)]
    return {"ok": False, "diagnostics": [d.to_json() for d in found]} if found else {"ok": True}


def _rustc_and_clippy(cargo: Cargo, text: str, name: str, lines: LineMap) -> Iterator[Diagnostic]:
    with cargo.locked():
        crate = _write_crate(cargo, text)
        process = cargo.start(
            ["build", "--lib", "--release", "--locked", "--offline", "--message-format=json", "--quiet"],
            crate,
            {
                "RUSTC_WORKSPACE_WRAPPER": cargo.clippy_driver,
                "CLIPPY_ARGS": _DENY_WARNINGS,
                "CLIPPY_CONF_DIR": str(crate),
            },
        )
        output, errors = process.communicate()
    if process.returncode != 0 and (fault := faults.said_in(errors, "cargo")):
        raise fault
    found = list(_problems(output, name, lines))
    if process.returncode != 0 and not found:
        raise DiagnosticError(_unexplained(errors))
    yield from found


def _write_crate(cargo: Cargo, text: str) -> Path:
    """The crate has one place per target folder, since cargo knows a package by its place."""
    crate = cargo.target / _FOLDER
    crate.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(cargo.sources / "Cargo.lock", crate / "Cargo.lock")
    (crate / "Cargo.toml").write_text((cargo.sources / "Cargo.toml").read_text() + _LIBRARY)
    (crate / "clippy.toml").write_text("")  # else clippy looks for one in the folders above
    (crate / "port.rs").write_text(text)
    return crate


def _problems(output: str, name: str, lines: LineMap) -> Iterator[Diagnostic]:
    for line in output.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("reason") != "compiler-message" or event["target"]["name"] != "port":
            continue
        message = event["message"]
        primary = next((span for span in message["spans"] if span["is_primary"]), None)
        if message["level"] == "error" and primary is not None:
            yield _problem(message, primary, name, lines)
        elif message["level"] == "error" and not message["message"].startswith("aborting due to"):
            if fault := faults.said_in(message["message"], "rustc"):
                raise fault
            yield Diagnostic(f"rustc: {message['message']}", Blame.TILEBUILD, Span(name))


def _problem(message: dict[str, Any], primary: dict[str, Any], name: str, lines: LineMap) -> Diagnostic:
    code = (message.get("code") or {}).get("code") or "rustc"
    one_line = primary["line_start"] == primary["line_end"]
    span = Span(
        name, primary["line_start"], primary["column_start"], primary["column_end"] if one_line else 0
    )
    source = primary["text"][0]["text"] if primary["text"] else ""
    label = f": {primary['label']}" if primary.get("label") else ""
    helps = [
        child["message"] for child in message["children"] if child["level"] == "help" and not _is_noise(child)
    ]
    return lines.diagnostic(f"{code}: {message['message']}{label}", span, source, "\n".join(helps))


def _is_noise(child: dict[str, Any]) -> bool:
    return str(child["message"]).startswith(("for further information visit", "to override `-D"))


def _unexplained(errors: str) -> Diagnostic:
    tail = [line for line in errors.splitlines() if line.strip()][-10:]
    fact = f"cargo fails before it reaches the port: {tail[-1].strip() if tail else 'no message'}"
    return Diagnostic(fact, Blame.TOOLCHAIN, help="\n".join(["tilebuild doctor", *tail]))


def _rustfmt(cargo: Cargo, text: str, name: str) -> Iterator[Diagnostic]:
    """One diagnostic, at the first line that rustfmt would write otherwise."""
    done = subprocess.run(
        [cargo.rustfmt, "--edition", _EDITION, "--config-path", "/dev/null"],
        input=text,
        capture_output=True,
        text=True,
        env=dict(cargo.environment),
    )
    if done.returncode != 0:
        if fault := faults.said_in(done.stderr, "rustfmt"):
            raise fault
        if done.returncode < 0:
            raise DiagnosticError(_unexplained(f"rustfmt was ended by signal {-done.returncode}"))
        lines = done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"]
        yield Diagnostic(f"rustfmt fails: {lines[0]}", Blame.TILEBUILD, Span(name), help="\n".join(lines[1:]))
    elif done.stdout != text:
        before, after = text.splitlines(), done.stdout.splitlines()
        pairs = zip_longest(before, after)
        number = next((n for n, (old, new) in enumerate(pairs, 1) if old != new), len(before))
        written = after[number - 1] if number <= len(after) else ""
        help = f"it would write:\n{written}"
        source = before[number - 1] if number <= len(before) else ""
        yield Diagnostic(
            "rustfmt would format this otherwise", Blame.TILEBUILD, Span(name, number), source, help
        )
