"""Judges one rung of one kernel from the static verdicts. Knows nothing of other rungs, of tests or of a GPU.

    judge --rung RUNG INSTANCE...

Reads `instances.json`, `check.json` and, for each instance (`signature/architecture`), its
`python.status.json`, `python.assembly.json`, `rust.status.json` and `comparison.json`. Writes `rung.json` and
`next`, which is empty when no lower rung is needed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilebuild.diagnostics import Blame, Diagnostic
from tilebuild.port import InstanceVerdict, RungVerdict
from tilebuild.verdict import IDENTICAL, INTERFACES_ALIKE

_REFUSED = (
    "the kernel does not compile without tilebuild either: write it with other operations, smaller tiles\n"
    "or a plain name, or leave this architecture out"
)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="judge")
    parser.add_argument("--rung", required=True)
    parser.add_argument("instance", nargs="+")
    arguments = parser.parse_args(argv)

    verdict = judge(
        arguments.rung,
        _read(Path("instances.json")),
        _read(Path("check.json")),
        {
            i: original(_read(Path(i, "python.status.json")), _read(Path(i, "python.assembly.json")))
            for i in arguments.instance
        },
        {i: _read(Path(i, "rust.status.json")) for i in arguments.instance},
        {i: _read(Path(i, "comparison.json")) for i in arguments.instance},
    )
    Path("rung.json").write_text(json.dumps(verdict.to_json(), indent=1, sort_keys=True) + "\n")
    Path("next").write_text(f"{verdict.reason}\n" if verdict.reason else "")
    return 0


def original(status: Mapping[str, Any], assembly: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status of an original: what the assembler refuses does not compile either."""
    if not status["ok"] or assembly["ok"]:
        return status
    fact = f"tileiras refuses what the cuTile front end makes of the kernel: {assembly['message']}"
    refusal = Diagnostic(fact, Blame.KERNEL, help=_REFUSED)
    return {"ok": False, "diagnostics": [refusal.to_json()]}


def judge(
    rung: str,
    translation: Mapping[str, Any],
    check: Mapping[str, Any],
    python: Mapping[str, Mapping[str, Any]],
    rust: Mapping[str, Mapping[str, Any]],
    comparisons: Mapping[str, Mapping[str, Any]],
) -> RungVerdict:
    """What the rung is worth. An instance whose original does not compile counts for nothing."""
    python_fails = {key: _diagnostics(s["diagnostics"]) for key, s in python.items() if not s["ok"]}
    refused = _diagnostics(translation["refused"] or [])
    evidence = {
        key: InstanceVerdict(c["headline"], c["interface"], c.get("flagged", False), c["first_difference"])
        for key, c in comparisons.items()
        if key not in python_fails
    }
    return RungVerdict(
        rung=rung,
        style=translation["style"],
        unsafe_lines=translation["unsafe_lines"],
        evidence=evidence,
        python_fails=python_fails,
        reason=_reason(refused, check, rust, evidence) if len(python_fails) < len(python) else "",
        refused=refused,
        check=None if check["ok"] else _diagnostics(check.get("diagnostics", [])),
        notes=tuple(translation.get("notes", ())),
    )


def _reason(
    refused: Sequence[Diagnostic],
    check: Mapping[str, Any],
    rust: Mapping[str, Mapping[str, Any]],
    evidence: Mapping[str, InstanceVerdict],
) -> str:
    if refused:
        return f"cannot express it: {refused[0].fact}"
    if not check["ok"]:
        words = _diagnostics(check.get("diagnostics", []))
        return f"does not compile: {words[0].fact}" if words else "does not compile"
    for key, verdict in sorted(evidence.items()):
        if not rust[key]["ok"]:
            return f"{key}: {_first_sentence(_diagnostics(rust[key]['diagnostics'])[0].fact)}"
        if verdict.headline not in IDENTICAL:
            difference = (verdict.difference or {}).get("fact", "")
            return f"{key}: {verdict.headline}" + (f": {difference}" if difference else "")
        if verdict.interface not in INTERFACES_ALIKE:
            return f"{key}: parameters are laid out differently"
    return ""


def _first_sentence(text: str) -> str:
    """What a compiler says is wrong, without its advice: that is for authors of Rust."""
    return text.split(". ")[0]


def _diagnostics(data: Sequence[Mapping[str, Any]]) -> tuple[Diagnostic, ...]:
    return tuple(Diagnostic.from_json(dict(d)) for d in data)


def _read(path: Path) -> Any:
    return json.loads(path.read_text())
