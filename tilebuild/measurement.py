"""What a GPU run writes down for one case, and the verdict that follows from it. Knows no device and no file.

A row is plain JSON. It holds what is needed to derive its verdict again: `judge` is called by the runner
that writes a row and by whoever checks it later. `seal` puts a digest over a row, so that an edit of any
word of it is found; that a GPU produced the numbers it cannot show.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import exp, log
from typing import Any

from tilebuild.bound import Bound, representable, within
from tilebuild.paired import doubts, figures, word

#: A change of what a protocol does or of what its row holds makes rows of an earlier one stale.
PROTOCOLS: Mapping[str, int] = {"gpu-test": 1, "benchmark": 1}
SIDES = ("python", "rust")
#: What a control does instead of the kernel.
CONTROLS: Mapping[str, str] = {"null": "does nothing", "zero": "writes zeros"}
_DIGEST = "digest"


@dataclass(frozen=True)
class Verdict:
    """`state` is passed, failed, not-applicable, or for a benchmark measured; `word` is a benchmark's."""

    state: str
    reasons: tuple[str, ...] = ()
    word: str = ""


def judge(row: Mapping[str, Any]) -> Verdict:
    """The verdict that a row's numbers give."""
    if row.get("error"):
        return Verdict("failed", (str(row["error"]),))
    return _judge_test(row) if row["stage"] == "gpu-test" else _judge_benchmark(row)


def seal(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with its verdict and its digest."""
    verdict = judge(row)
    judged = {**row, "state": verdict.state, "reasons": list(verdict.reasons)}
    if verdict.word:
        judged["word"] = verdict.word
    return judged | {_DIGEST: digest(judged)}


def digest(row: Mapping[str, Any]) -> str:
    """The SHA-256 of a row without its digest."""
    content = {key: value for key, value in row.items() if key != _DIGEST}
    return sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def problems(row: Mapping[str, Any]) -> list[str]:
    """Everything in a row that does not hold together; empty for a sound row."""
    found = []
    if row.get(_DIGEST) != digest(row):
        found.append("the row was changed after it was recorded: its digest does not match")
    if row.get("protocol") != PROTOCOLS.get(row.get("stage", "")):
        found.append(f"protocol {row.get('protocol')} of {row.get('stage')} is not the present one")
    try:
        found += _contradictions(row)
    except (KeyError, TypeError, ValueError, IndexError, ArithmeticError) as error:
        found.append(f"the row is incomplete: {type(error).__name__}: {error}")
    return found


def speed_gate(
    rows: Sequence[Mapping[str, Any]], speed: float, row_floor: float
) -> tuple[str, float | None, list[str]]:
    """The state of the speed gate over the benchmark rows of an operator, its mean speed, and what is wrong.

    Speed is Python's time over Rust's; the mean is geometric. A run that decides nothing leaves the gate
    pending.
    """
    measured = [row for row in rows if row["state"] == "measured"]
    if not measured:
        return "pending", None, []
    mean = exp(sum(-log(row["figures"]["ratio"]) for row in measured) / len(measured))
    slow = [row for row in measured if row["word"] != "unstable" and 1 / row["figures"]["ratio"] < row_floor]
    reasons = [f"{r['case']} runs at {1 / r['figures']['ratio']:.3f} of Python's speed" for r in slow]
    if mean < speed:
        reasons.append(f"the mean speed is {mean:.3f}, the gate {speed}")
    unstable = [row["case"] for row in measured if row["word"] == "unstable"]
    if unstable and not slow:
        return "pending", mean, [f"unstable: {', '.join(unstable)}"]
    return ("failed" if reasons else "passed"), mean, reasons


# gpu-test


def _judge_test(row: Mapping[str, Any]) -> Verdict:
    outputs = row["outputs"]
    if not any(output["elements"] for output in outputs):
        return Verdict("not-applicable", ("the outputs of the case have no elements",))
    reasons = [reason for output in outputs for reason in _output_reasons(output, row["identical"])]
    for side in SIDES:
        changes = row["memory"][side]
        if changes["guard_bytes"]:
            reasons.append(f"{side} wrote {changes['guard_bytes']} bytes outside its arrays")
        if changes["inputs"]:
            reasons.append(f"{side} changed the input {', '.join(changes['inputs'])}")
    for control, does in CONTROLS.items():
        if not any(worst["outside"] for worst in row["controls"][control].values()):
            reasons.append(f"the test proves nothing: a kernel that {does} passes it")
    return Verdict("failed" if reasons else "passed", tuple(reasons))


def _output_reasons(output: Mapping[str, Any], identical: bool) -> Iterator[str]:
    python, rust = output["python"], output["rust"]
    for side in SIDES:
        name, result = f"{side}'s {output['array']}", output[side]
        worst = result["worst"]
        if result["unwritten"]:
            yield f"{name}: {result['unwritten']} of {output['elements']} elements were never written"
        if worst["outside"]:
            place = (
                f"worst at {worst['index']}: {worst['got']} instead of {worst['want']} ± {worst['bound']:.3g}"
            )
            yield f"{name}: {worst['outside']} of {output['elements']} elements out of bounds, {place}"
    if not python["repeats"]:
        return  # the original differs from itself, so bits decide nothing
    if not rust["repeats"]:
        yield f"rust's {output['array']} differs between two runs, Python's does not"
    elif identical and rust["sha256"] != python["sha256"]:
        yield f"{output['array']}: the machine code is the same, the bits are not"


# benchmark


def _judge_benchmark(row: Mapping[str, Any]) -> Verdict:
    reasons = tuple(
        f"{side} computed something else after the timing than before it"
        for side in SIDES
        if not row["recheck"][side]
    )
    if reasons:
        return Verdict("failed", reasons)
    found = figures(row["times"])
    throttled = row["clocks"]["throttled"]
    return Verdict(
        "measured",
        tuple(doubts(row["times"], found, throttled)),
        word(row["times"], found, throttled),
    )


# Holding a row to itself


def _contradictions(row: Mapping[str, Any]) -> Iterator[str]:
    verdict = judge(row)
    if row["state"] != verdict.state:
        yield f"the row says {row['state']}, its numbers say {verdict.state}"
    if list(verdict.reasons) != row["reasons"]:
        yield f"the row gives the reasons {row['reasons']}, its numbers {list(verdict.reasons)}"
    if row.get("error"):
        return
    if row["stage"] == "gpu-test":
        for output in row["outputs"]:
            yield from _output_contradictions(output, row["controls"])
        return
    if row["figures"] != figures(row["times"]).to_json():
        yield f"the figures {row['figures']} do not follow from the times"
    if row.get("word", "") != verdict.word:
        yield f"the row says {row.get('word')}, its times say {verdict.word}"


def _output_contradictions(
    output: Mapping[str, Any], controls: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    bound = Bound(**output["bound"])
    worsts = {side: output[side]["worst"] for side in SIDES}
    worsts |= {f"the {name} control": found[output["array"]] for name, found in controls.items()}
    for name, worst in worsts.items():
        if worst["index"] is None:
            continue
        got, want = float(worst["got"]), float(worst["want"])
        limit = worst["bound"]
        place = f"{output['array']}{worst['index']} of {name}"
        if abs(want) < float("inf") and limit != bound.at(want, worst["magnitude"]):
            yield f"{place}: the bound {limit} does not follow from the reference {want}"
        if not representable(got, bound.dtype):
            yield f"{place}: no {bound.dtype} is {got}"
        if within(got, want, limit, bound.dtype) != (worst["outside"] == 0):
            yield f"{place}: {worst['outside']} elements out of bounds, but the worst is {got} for {want}"
