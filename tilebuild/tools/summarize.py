"""Says what an operator is worth: its ports, its tests, its gates. Knows nothing of how it was found out.

    summarize --target LABEL --gates GATES.json [--cpu-test FILE]... [--gpu GATE]... [--gpu-plan FILE]...
        -- KERNEL...

Reads `<kernel>/choice.json`, the files of the tests that were asked for, and for gates of a GPU the ledger in
`cache/`. Writes `verdict.json`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError
from tilebuild.ledger import FOLDER, Ledger, LedgerError
from tilebuild.port import Choice
from tilebuild.tools import gpu_gates
from tilebuild.tools.gpu_gates import Planned
from tilebuild.verdict import evidence_rank


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="summarize")
    parser.add_argument("--target", required=True)
    parser.add_argument("--gates", required=True)
    parser.add_argument("--cpu-test", action="append", default=[])
    parser.add_argument("--gpu", action="append", default=[], choices=gpu_gates.GATES)
    parser.add_argument("--gpu-plan", action="append", default=[])
    parser.add_argument("kernel", nargs="+")
    arguments = parser.parse_args(argv)

    choices = [Choice.from_json(json.loads(Path(k, "choice.json").read_text())) for k in arguments.kernel]
    tests = [json.loads(Path(path).read_text()) for path in arguments.cpu_test]
    gates = json.loads(Path(arguments.gates).read_text())
    verdict = summarize(arguments.target, gates, choices, tests)
    if arguments.gpu:
        _add_gpu(verdict, gates, arguments.gpu, _planned(arguments.gpu_plan))
    Path("verdict.json").write_text(json.dumps(verdict, indent=1, sort_keys=True) + "\n")
    return 0


def _planned(paths: Sequence[str]) -> list[Planned]:
    """What is planned for each device class, with what is recorded. An unreadable ledger is an error."""
    ledger = Ledger(Path(FOLDER))
    try:
        return [Planned.read(json.loads(Path(path).read_text()), ledger) for path in paths]
    except LedgerError as error:
        help = "restore the file from version control, or remove it and record its verdicts again"
        raise DiagnosticError(Diagnostic(str(error), Blame.BUILD_FILE, help=help)) from error


def _add_gpu(
    verdict: dict[str, Any], gates: Mapping[str, Any], wanted: Sequence[str], planned: Sequence[Planned]
) -> None:
    """Adds the gates that a GPU decides, what they follow from, and what has no verdict yet."""
    states: list[dict[str, Any]] = []
    pending: list[dict[str, Any]] = []
    if "test" in wanted:
        verdict["gpu_test"] = [gpu_gates.summary_of_tests(item) for item in planned]
        states.append(gpu_gates.gate_of_tests(planned))
        pending += gpu_gates.pending(planned, gpu_gates.TEST)
    if "speed" in wanted or "measured-speed" in wanted:
        measured = "measured-speed" in wanted
        verdict["benchmark"] = [gpu_gates.summary_of_benchmarks(item, gates) for item in planned]
        speed = list(gpu_gates.gates_of_speed(planned, gates, measured=measured))
        states += speed
        if any(gate["state"] == "pending" for gate in speed):
            pending += gpu_gates.pending(planned, gpu_gates.BENCHMARK)
    verdict["gates"] += states
    verdict["pending"] = pending
    verdict["ok"] = verdict["ok"] and all(state["state"] != "failed" for state in states)


def summarize(
    target: str,
    gates: Mapping[str, Any],
    choices: Sequence[Choice],
    cpu_tests: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """The operator's verdict file, schema 1. `ok` is false exactly when a gate failed."""
    states = [_evidence_gate(gates["evidence"], choices)]
    if cpu_tests:
        states.append(_cpu_gate(cpu_tests))
    return {
        "schema": 1,
        "target": target,
        "kernels": [_kernel(choice) for choice in choices],
        "cpu_test": _cpu_summary(cpu_tests),
        "gates": states,
        "diagnostics": _diagnostics(choices),
        "ok": all(state["state"] not in ("failed", "python-fails") for state in states),
    }


def _kernel(choice: Choice) -> dict[str, Any]:
    chosen = choice.chosen
    evidence: dict[str, dict[str, str]] = {}
    for instance in choice.python_fails or {}:
        signature, architecture = instance.split("/")
        evidence.setdefault(signature, {})[architecture] = "python-fails"
    for instance, verdict in chosen.evidence.items() if chosen is not None else ():
        signature, architecture = instance.split("/")
        evidence.setdefault(signature, {})[architecture] = verdict.headline
    return {
        "kernel": choice.kernel,
        "style": chosen.style if chosen is not None else None,
        "rung": chosen.rung if chosen is not None else None,
        "unsafe_lines": chosen.unsafe_lines if chosen is not None else 0,
        "reason": chosen.reason if chosen is not None else "",
        "failed_rungs": [{"rung": f.rung, "reason": f.reason} for f in choice.failed],
        "evidence": evidence,
        "interface": _one({v.interface for v in chosen.evidence.values()}) if chosen is not None else None,
        "flagged": sorted(i for i, v in chosen.evidence.items() if v.flagged) if chosen is not None else [],
        "notes": list(chosen.notes) if chosen is not None else [],
    }


def _one(words: set[str]) -> str:
    return words.pop() if len(words) == 1 else "mixed"


def _evidence_gate(required: str, choices: Sequence[Choice]) -> dict[str, str]:
    gate = {"gate": "evidence", "required": required, "state": "passed", "why": ""}
    for choice in choices:
        if choice.chosen is None and choice.python_fails:
            return gate | {
                "state": "python-fails",
                "why": f"{choice.kernel}: the Python kernel does not compile",
            }
        if choice.chosen is None:
            why = choice.refused[0].fact if choice.refused else "no rung could express it"
            return gate | {"state": "failed", "why": f"{choice.kernel} cannot be translated: {why}"}
        if choice.chosen.check is not None:
            return gate | {"state": "failed", "why": f"{choice.kernel}: {choice.chosen.reason}"}
        for instance, verdict in sorted(choice.chosen.evidence.items()):
            if evidence_rank(verdict.headline) > evidence_rank(required):
                why = f"{choice.kernel} {instance}: {verdict.headline}, required is {required}"
                return gate | {"state": "failed", "why": why}
        if choice.python_fails:
            return gate | {
                "state": "python-fails",
                "why": f"{choice.kernel}: a signature does not compile in Python",
            }
    return gate


def _cpu_gate(tests: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    states = {test["state"] for test in tests}
    state = "failed" if "failed" in states else "passed" if "passed" in states else "not-applicable"
    failed = [case["name"] for test in tests for case in test["cases"] if case.get("state") == "failed"]
    return {"gate": "cpu-test", "state": state, "why": f"failed: {', '.join(failed)}" if failed else ""}


def _cpu_summary(tests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    cases = [case for test in tests for case in test["cases"]]
    states = [case["state"] for case in cases]
    return {
        "passed": states.count("passed"),
        "failed": states.count("failed"),
        "not_applicable": states.count("not-applicable"),
        "cases": cases,
    }


def _diagnostics(choices: Sequence[Choice]) -> list[dict[str, Any]]:
    """Everything that a person must read, each problem once."""
    words = [d for c in choices for ds in (c.python_fails or {}).values() for d in ds]
    words += [d for c in choices for d in c.refused]
    words += [d for c in choices if c.chosen is not None for d in c.chosen.check or ()]
    return [d.to_json() for d in dict.fromkeys(words)]
