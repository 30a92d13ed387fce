"""What a GPU has said of targets, and what it still has to say, as text. Knows no ledger and no device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tilebuild.report import TargetResult
from tilebuild.reporting.text import Style, columns

_NAMED = 4
_COUNTS = (("passed", "passed"), ("pending", "pending"), ("not_applicable", "not applicable"))


def tested(verdict: Mapping[str, Any]) -> Iterator[str]:
    """One line per device class and gate that a GPU decides."""
    for item in verdict.get("gpu_test", ()):
        said = [f"{item[key]} {word}" for key, word in _COUNTS if item[key]]
        yield f"gpu test on {_device(item)}: {', '.join(said) or 'no case'}"
    for gate in verdict.get("gates", ()):
        if gate["gate"] == "speed" and gate["state"] != "not-applicable":
            yield f"speed on {gate['device']}: {gate['state']}: {gate['why']}"


def figures(targets: Sequence[TargetResult], style: Style) -> Iterator[str]:
    """The table of everything that was measured; times are those of one launch."""
    rows = [["case", "device", "python", "rust", "rust/python", "95 % interval", "word", "SM clock"]]
    for target in targets:
        for item in (target.verdict or {}).get("benchmark", ()):
            rows += [_row(target, item, case) for case in item["cases"]]
    if len(rows) > 1:
        heading, *lines = columns(rows, right=frozenset({2, 3, 4}))
        yield style.faint(heading)
        yield from lines


def pending(targets: Sequence[TargetResult], style: Style, *, cases: bool) -> Iterator[str]:
    """What has no verdict yet and how to make it; with `cases` each by its name."""
    operators: dict[str, None] = {}
    for target in targets:
        for item in target.pending:
            operators[item["target"]] = None
            if cases:
                kernels = ", ".join(item["kernels"])
                where = f"kernel {kernels}, case {item['case']}, {item['stage']} on {item['device']}"
                yield style.strong("PENDING") + f" {item['target']}: {where}"
                if item["why"]:
                    yield f"  what is recorded does not count: {item['why']}"
    if operators:
        named = " ".join(operators) if len(operators) <= _NAMED else "//..."
        yield f"pending verdicts are made by `tilebuild test {named}` on a machine with that GPU, or without:"
        yield f"  here `tilebuild bundle export {named} --out DIR`,"
        yield "  there `python3 DIR/runner --out results.json`, here `tilebuild bundle import results.json`"


def microseconds(nanoseconds: float) -> str:
    """A time of a launch with three figures: `3.42 µs`, `214 µs`, `3040 µs`."""
    value = nanoseconds / 1000
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f} µs"


def _row(target: TargetResult, item: Mapping[str, Any], case: Mapping[str, Any]) -> list[str]:
    name = f"{target.label.removesuffix('.benchmark')} {case['name']}"
    found = case["figures"]
    if found is None:
        return [name, item["device"]["name"], "-", "-", "-", "-", case["state"], "-"]
    return [
        name,
        item["device"]["name"],
        microseconds(found["python_ns"]),
        microseconds(found["rust_ns"]),
        f"{found['ratio']:.4f}",
        f"{found['low']:.4f} to {found['high']:.4f}",
        case["word"],
        _clock(case["clocks"]["sm_mhz"]),
    ]


def _clock(speeds: Sequence[int]) -> str:
    low, high = speeds
    return f"{low} MHz" if low == high else f"{low} to {high} MHz"


def _device(item: Mapping[str, Any]) -> str:
    return str(item["device"]["name"])
