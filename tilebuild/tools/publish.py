"""Copies what belongs to the chosen rung to where people look for it. Knows nothing of how it was chosen.

    publish INSTANCE...

Reads `choice.json` and, from `<rung>/`, the port and what was made of it. Writes `port.rs`, `port.json` (the
choice, and how each instance is made), `differences.json` (what differs, with both source lines) and
`out/<instance>/` with the chosen byte code, its text and the cubin; all empty where there is no port.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilebuild.diagnostics import Blame, Diagnostic, Note, Span
from tilebuild.port import Choice, InstanceVerdict

_DIFFERENT = (
    "`tilebuild show TARGET --diff` shows both sides; where weaker evidence will do, the target says so:\n"
    'gates = {"evidence": "same-ir", "reason": "…"}'
)
_FILES = ("kernel.tilebc", "kernel.tileir", "kernel.cubin")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="publish")
    parser.add_argument("instance", nargs="+")
    arguments = parser.parse_args(argv)

    choice = Choice.from_json(json.loads(Path("choice.json").read_text()))
    rung = Path(choice.chosen.rung) if choice.chosen is not None else None
    port: dict[str, Any] = {"schema": 1, "choice": choice.to_json(), "instances": {}}
    if rung is not None:
        port["instances"] = json.loads((rung / "instances.json").read_text())["instances"]
    Path("port.json").write_text(json.dumps(port, indent=1, sort_keys=True) + "\n")
    _copy(rung and rung / "port.rs", Path("port.rs"))
    for instance in arguments.instance:
        Path("out", instance).mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            _copy(rung and rung / instance / name, Path("out", instance, name))
    differences = [] if choice.chosen is None or rung is None else _differences(choice.chosen.evidence, rung)
    Path("differences.json").write_text(json.dumps([d.to_json() for d in differences], indent=1) + "\n")
    return 0


def _copy(source: Path | None, target: Path) -> None:
    if source is not None and source.exists():
        shutil.copyfile(source, target)
    else:
        target.write_bytes(b"")


def _differences(evidence: Mapping[str, InstanceVerdict], rung: Path) -> list[Diagnostic]:
    found = []
    for instance, verdict in sorted(evidence.items()):
        if verdict.difference is not None:
            found.append(_located(instance, verdict, rung))
    return found


def _located(instance: str, verdict: InstanceVerdict, rung: Path) -> Diagnostic:
    """The first difference of one instance, at the Python line, with the Rust line as a note."""
    difference = verdict.difference or {}
    return Diagnostic(
        fact=f"{instance}: {verdict.headline}: {difference.get('fact', 'the two sides differ')}",
        blame=Blame.KERNEL,
        span=_python_span(Path(instance, "names.json"), difference.get("python_op", -1)),
        help=_DIFFERENT,
        notes=_rust_note(rung / instance / "locations.json", difference.get("rust_op", -1)),
    )


def _python_span(path: Path, operation: int) -> Span | None:
    if operation < 0 or not path.exists():
        return None
    names = json.loads(path.read_text())
    if operation >= len(names["locations"]) or (index := names["locations"][operation]) < 0:
        return None
    file, line, column = names["location_table"][index][:3]
    return Span(file, line, column)


def _rust_note(path: Path, operation: int) -> tuple[Note, ...]:
    if operation < 0 or not path.exists():
        return ()
    lines = json.loads(path.read_text())["locations"]
    if operation >= len(lines) or not lines[operation]:
        return ()
    return (Note("this is what the Rust side does there", Span("port.rs", lines[operation])),)
