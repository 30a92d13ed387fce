"""Tests a port on the CPU: both programs are interpreted on the inputs of a case. Knows no compiler, no GPU.

    cpu_test --plan plan.json --out cpu_test.json

The plan names the cases, the programs of both sides for each step, and the reference. For each case:
- Rust and Python must leave equal bits;
- each must lie within the bound of the reference;
- neither may touch what is not its own, leave an output unwritten, or depend on lanes that hold nothing;
- a kernel that does nothing must fail the same comparison, or the test is worth nothing.

The verdict's form is `tilebuild/schema/cpu_test.json`. A case that cannot be interpreted is *not applicable*,
with the reason; that is never shown as passed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilebuild.bound import Bound, bound_for, farthest, plain
from tilebuild.case import Case, CaseError, read_case
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError
from tilebuild.interpreter.elements import UnknownElement
from tilebuild.interpreter.frame import Refused, TooLarge
from tilebuild.interpreter.machine import BUDGET
from tilebuild.tileir.parse import parse
from tilebuild.tileir.tree import Entry
from tilebuild.tools.reference import Reference, magnitudes, make_inputs, output_names, parameter_names
from tilebuild.tools.trial import (
    Outcome,
    Step,
    Values,
    attempt,
    bytes_of,
    contents,
    draw_inputs,
    first_difference,
    shown_names,
    untouched,
)

SCHEMA = 1
SIDES = ("python", "rust")
#: Larger cases are for a GPU.
BYTES = 32 << 20


class NotApplicable(Exception):
    """A case that the interpreter cannot test."""


@dataclass(frozen=True)
class Trial:
    """A case with all that its verdict needs."""

    case: Case
    names: Sequence[Sequence[str]]
    inputs: Values
    contents: Values
    outcomes: Mapping[str, Outcome]
    reference: Reference | None
    overrides: Mapping[str, float]

    def shown(self, array: str) -> str:
        return shown_names(self.case, self.names)[array]


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="cpu_test")
    parser.add_argument("--plan", required=True)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args(argv)

    plan = json.loads(Path(arguments.plan).read_text(encoding="utf-8"))
    if plan.get("schema") != SCHEMA:
        fact = f"the plan has the schema {plan.get('schema')!r}, this tool reads {SCHEMA}"
        raise DiagnosticError(Diagnostic(fact, Blame.TILEBUILD))
    cases = [case_verdict(plan, item) for item in plan["cases"]]
    verdict = {"schema": SCHEMA, "state": _overall([case["state"] for case in cases]), "cases": cases}
    Path(arguments.out).write_text(json.dumps(verdict, indent=1, sort_keys=True, allow_nan=False) + "\n")
    return 0


def case_verdict(plan: Mapping[str, Any], item: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict of one case."""
    case = read_case(item["case"])
    try:
        trial = _try(plan, case, item["steps"])
    except NotApplicable as reason:
        return {"name": case.name, "state": "not-applicable", "reason": str(reason)}
    sections = {
        "rust_vs_python": _sides(trial),
        "memory": {side: _conduct(trial, side) for side in SIDES},
        "controls": _controls(trial),
        **{f"{side}_vs_reference": _against_reference(trial, trial.outcomes[side]) for side in SIDES},
    }
    failed = list(_failures(sections))
    return {
        "name": case.name,
        "state": "failed" if failed else "passed",
        "reason": "; ".join(failed),
        **sections,
    }


def _overall(states: Sequence[str]) -> str:
    if "failed" in states:
        return "failed"
    return "passed" if "passed" in states else "not-applicable"


def _failures(sections: Mapping[str, Any]) -> list[str]:
    """What is wrong, in words, worst first."""
    facts = [f"{side}: {fact}" for side in SIDES for fact in sections["memory"][side]["problems"]]
    for key in ("rust_vs_python", "python_vs_reference", "rust_vs_reference", "controls"):
        if sections[key]["state"] == "failed":
            facts.append(f"{key.replace('_', ' ')}: {sections[key]['fact']}")
    return facts


# Running


def _try(plan: Mapping[str, Any], case: Case, files: Sequence[Mapping[str, str]]) -> Trial:
    if bytes_of(case) > BYTES:
        size = f"its arrays have {bytes_of(case)} bytes, the limit is {BYTES}"
        raise NotApplicable(f"too large for the interpreter: {size}")
    names = [
        parameter_names(step, json.loads(Path(f["interface"]).read_text(encoding="utf-8")))
        for step, f in zip(case.steps, files, strict=True)
    ]
    programs = {side: _programs(plan, case, files, names, side) for side in SIDES}
    given = make_inputs(plan["inputs"], np, case) if plan.get("inputs") else {}
    inputs = draw_inputs(case, given)
    reference = None
    if plan.get("reference"):
        reference = Reference(plan["reference"], np, case, plan["operator"], names)
    outcomes = {side: _run(case, programs[side], inputs, side) for side in SIDES}
    before = contents(case, inputs)
    return Trial(case, names, inputs, before, outcomes, reference, plan.get("bounds") or {})


def _programs(
    plan: Mapping[str, Any],
    case: Case,
    files: Sequence[Mapping[str, str]],
    names: Sequence[Sequence[str]],
    side: str,
) -> list[Step]:
    steps = []
    for launch, paths, parameters in zip(case.steps, files, names, strict=True):
        entry = _read_program(paths[side], side, launch.kernel)
        try:
            grid = case.grid(launch, parameters, plan["grids"].get(launch.kernel))
        except CaseError as error:
            facts = "; ".join(fact for _, fact in error.problems)
            raise DiagnosticError(Diagnostic(f"case {case.name}: {facts}", Blame.BUILD_FILE)) from None
        steps.append(Step(launch, entry, grid, parameters))
    return steps


def _read_program(path: str, side: str, kernel: str) -> Entry:
    file = Path(path)
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    if not text.strip():
        missing = f"{kernel} does not compile" if side == "python" else f"{kernel} has no port"
        raise NotApplicable(missing)
    return parse(text, path)


def _run(case: Case, steps: Sequence[Step], inputs: Values, side: str) -> Outcome:
    try:
        outcome = attempt(case, steps, inputs, BUDGET)
        if not outcome.saw_undetermined or outcome.faults:
            return outcome
        # Some lanes held NaN because nothing says what they hold. With another value there, all must stay.
        again = attempt(case, steps, inputs, BUDGET, large_poison=True)
    except TooLarge:
        raise NotApplicable(
            f"too large for the interpreter: {side} needs more than {BUDGET} element operations"
        ) from None
    except (Refused, UnknownElement) as error:
        raise NotApplicable(f"{side}: {error}") from None
    difference = None if again.faults else first_difference(outcome.results, again.results)
    if difference is None and not again.faults:
        return outcome
    fact = "the results depend on lanes that lie outside of an array and have no padding value"
    return Outcome(outcome.results, (fact,), outcome.changed_inputs, outcome.unwritten, True)


# Judging


def _sides(trial: Trial) -> dict[str, Any]:
    """Whether both programs left the same bits."""
    python, rust = (trial.outcomes[side] for side in SIDES)
    if not python.results or not rust.results:
        return {"state": "not-applicable", "fact": "a program left no results"}
    difference = first_difference(python.results, rust.results)
    if difference is None:
        return {"state": "passed", "elements": sum(int(tile.size) for tile in python.results.values())}
    array, index = trial.shown(difference["array"]), difference["index"]
    got = [plain(value.astype(np.float64).item()) for value in difference.pop("values")]
    fact = f"{array}{index} is {got[0]} in Python and {got[1]} in Rust, {difference['different']} differ"
    return {**difference, "array": array, "state": "failed", "fact": fact, "python": got[0], "rust": got[1]}


def _conduct(trial: Trial, side: str) -> dict[str, Any]:
    """How a program treated the memory of the launch."""
    outcome = trial.outcomes[side]
    problems = [
        *outcome.faults,
        *(f"it writes to the input {trial.shown(name)}" for name in outcome.changed_inputs),
        *(f"it does not write all of {trial.shown(name)}: {what}" for name, what in outcome.unwritten),
    ]
    return {"problems": problems, "undetermined_lanes": outcome.saw_undetermined}


def _against_reference(trial: Trial, outcome: Outcome) -> dict[str, Any]:
    """The worst element of each output against its bound."""
    if trial.reference is None:
        return {"state": "not-applicable", "fact": "the operator has no reference"}
    if not outcome.results:
        return {"state": "failed", "fact": "the program left no results"}
    wanted, magnitude = trial.reference(trial.contents), trial.reference(magnitudes(trial.contents))
    outputs: dict[str, Any] = {}
    facts = []
    for name in output_names(trial.case):
        bound = _bound(trial, name)
        floats = trial.case.arrays[name].dtype[0] in "fbt" and trial.case.arrays[name].dtype != "bool"
        got, want = (_comparable(tile, floats) for tile in (outcome.results[name], wanted[name]))
        size = np.nan_to_num(np.abs(_comparable(magnitude[name], True)), posinf=0.0)
        worst = farthest(np, got, want, size, bound)
        outputs[trial.shown(name)] = {"worst": worst.to_json(), "bound": bound.to_json()}
        if worst.outside:
            at = f"{trial.shown(name)}{list(worst.index or ())} is {worst.got}, expected {worst.want}"
            facts.append(f"{at} ± {worst.bound:.3g}, {worst.outside} of {got.size} outside")
    state = "failed" if facts else "passed"
    return {"state": state, "outputs": outputs, **({"fact": "; ".join(facts)} if facts else {})}


def _bound(trial: Trial, output: str) -> Bound:
    arrays = trial.case.arrays
    shapes = [array.shape for name, array in arrays.items() if name in trial.contents]
    return bound_for(arrays[output].dtype, shapes, arrays[output].shape, trial.overrides)


def _comparable(tile: Any, floats: bool) -> Any:
    if floats:
        return np.asarray(tile).astype(np.float64)
    tile = np.asarray(tile)
    return tile.astype(np.uint64 if tile.dtype == np.uint64 else np.int64)


def _controls(trial: Trial) -> dict[str, Any]:
    """Whether the test would notice a kernel that does nothing."""
    idle = untouched(trial.case, trial.inputs)
    if trial.reference is not None:
        noticed = _against_reference(trial, idle)["state"] == "failed"
    else:
        results = trial.outcomes["python"].results
        noticed = bool(results) and first_difference(results, idle.results) is not None
    if noticed or idle.unwritten:
        return {"state": "passed", "null_kernel": "noticed"}
    fact = "a kernel that does nothing passes: the outputs hold the expected values before the launch"
    return {"state": "failed", "null_kernel": "missed", "fact": fact}
