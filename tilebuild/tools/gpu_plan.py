"""Says what a GPU has to run for the cases of an operator, and under which keys. Needs no GPU and runs
nothing.

    gpu_plan --request request.json --out gpu_plan.json

The request names, for each case and step, the cubins of both sides, the kernel's interface and the choice
of its port. The result holds an entry of a plan per case, its files named by their digests, or why the case
cannot run.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from tilebuild.case import Case, CaseError, Launch, read_case
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError
from tilebuild.gpu.arguments import ArgumentError
from tilebuild.gpu.bundle import Source, StepFiles, entry_of
from tilebuild.gpu.cubin import CubinError
from tilebuild.gpu.keys import case_key, source_digest
from tilebuild.gpu.plan import BENCHMARK, TEST
from tilebuild.port import Choice
from tilebuild.signature import DTYPES
from tilebuild.tileir.cubin import NotACubin, machine_code

SCHEMA = 1
_SHORT_NAMES = {name: short for short, (name, _) in DTYPES.items()}


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="gpu_plan")
    parser.add_argument("--request", required=True)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args(argv)

    request = json.loads(Path(arguments.request).read_text())
    result = {
        "schema": SCHEMA,
        "target": request["target"],
        "device": request["device"],
        "cases": [_planned(request, item) for item in request["cases"]],
    }
    Path(arguments.out).write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    return 0


def _planned(request: Mapping[str, Any], item: Mapping[str, Any]) -> dict[str, Any]:
    """One case: its entry and the sizes of the files it names; or no entry, and the reason."""
    case = read_case(item["case"])
    if reason := _unfit(item):
        return {"name": case.name, "entry": None, "reason": reason, "sizes": {}}
    interfaces = [_read_json(step["interface"])["parameters"] for step in item["steps"]]
    try:
        steps = [
            _step(request, case, step, files, parameters)
            for step, files, parameters in zip(case.steps, item["steps"], interfaces, strict=True)
        ]
        reference, inputs = _sources(request, case)
        entry, named = entry_of(
            request["target"],
            case.to_json(),
            steps,
            all(_headline(step) == "same-machine-code" for step in item["steps"]),
            reference,
            inputs,
            request["bounds"],
        )
    except (ArgumentError, CubinError, CaseError) as error:
        return {"name": case.name, "entry": None, "reason": str(error), "sizes": {}}
    digests = {
        role: source_digest(source.text.decode())
        for role, source in (("reference", reference), ("inputs", inputs))
        if source is not None
    }
    stages = (TEST, BENCHMARK) if case.benchmark else (TEST,)
    code = {name: found for name, content in named.items() if (found := _code_digest(name, content))}
    entry["keys"] = {stage: case_key(stage, entry, digests, request["device"], code) for stage in stages}
    sizes = {name: len(content) for name, content in named.items()}
    return {"name": case.name, "entry": entry, "reason": "", "sizes": sizes}


def _code_digest(name: str, content: bytes) -> str:
    """A digest of the machine code in a cubin: of all that a device sees of it but its entry's name.

    Parameters are no part of it, the arguments of a case give their layout. Empty for another file, and for a
    cubin that cannot be read, which counts whole.
    """
    try:
        parts = machine_code(content) if name.endswith(".cubin") else {}
    except NotACubin:
        return ""
    listed = [[part, sha256(data).hexdigest()] for part, data in sorted(parts.items())]
    return sha256(json.dumps(listed).encode()).hexdigest() if listed else ""


def _unfit(item: Mapping[str, Any]) -> str:
    """Why a case has nothing to run, or nothing."""
    for step in item["steps"]:
        for side in ("python", "rust"):
            if not Path(step[side]).read_bytes():
                return f"there is no {side} cubin of {step['instance']}"
    return ""


def _step(
    request: Mapping[str, Any],
    case: Case,
    step: Launch,
    files: Mapping[str, str],
    parameters: Sequence[Mapping[str, Any]],
) -> StepFiles:
    names = [str(parameter["name"]) for parameter in parameters]
    return StepFiles(
        grid=case.grid(step, names, request["grids"].get(step.kernel)),
        python=Path(files["python"]).read_bytes(),
        rust=Path(files["rust"]).read_bytes(),
        parameters=names,
        dtypes=[_SHORT_NAMES[p["dtype"]] if p["kind"] == "scalar" else None for p in parameters],
    )


def _headline(step: Mapping[str, str]) -> str:
    chosen = Choice.from_json(_read_json(step["choice"])).chosen
    return "" if chosen is None else chosen.evidence[step["instance"]].headline


def _sources(request: Mapping[str, Any], case: Case) -> tuple[Source | None, Source | None]:
    """The reference and the input maker, where the operator has them."""
    function = case.steps[0].kernel if len(case.steps) == 1 else request["operator"]
    found: list[Source | None] = []
    for path, name in ((request["reference"], function), (request["inputs"], "make")):
        if path is None:
            found.append(None)
            continue
        text = Path(path).read_bytes()
        try:
            source_digest(text.decode())
        except (SyntaxError, UnicodeDecodeError) as error:
            raise DiagnosticError(Diagnostic(f"{path}: {error}", Blame.KERNEL)) from error
        found.append(Source(path, text, name))
    return found[0], found[1]


def _read_json(path: str) -> Any:
    return json.loads(Path(path).read_text())
