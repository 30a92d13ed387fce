"""The verdicts of a build as one HTML page that needs nothing beside itself. Knows no build and no ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from tilebuild.report import Report, TargetResult
from tilebuild.reporting.device import microseconds

_TEMPLATE = Path(__file__).with_name("page.html.j2")
#: The widest ratio that the axis of the intervals shows, to either side of 1.
_LEAST_SPAN = 0.02


@dataclass(frozen=True)
class Bar:
    """An interval on the page's axis, in per cent of its width."""

    left: float
    width: float
    middle: float


def page(report: Report, workspace: str) -> str:
    """The page of a build that proved as much as there is to prove."""
    operators = [t for t in report.targets if not t.test and "kernels" in (t.verdict or {})]
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["microseconds"] = microseconds
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    rows = [row for target in operators for row in _benchmarks(target)]
    span = max([_LEAST_SPAN, *(_reach(row["figures"]) for row in rows)])
    return template.render(
        workspace=workspace,
        operators=operators,
        totals=_totals(operators),
        architectures=_architectures(operators),
        summed=_summed,
        tests=_tests,
        benchmarks=[row | {"bar": _bar(row["figures"], span)} for row in rows],
        span=span,
        pending=[item for target in operators for item in target.pending],
    )


def _totals(operators: list[TargetResult]) -> list[tuple[str, int]]:
    """What stands at the top of the page: number by word."""
    kernels = [kernel for target in operators for kernel in (target.verdict or {})["kernels"]]
    evidence = Counter(
        word for kernel in kernels for row in kernel["evidence"].values() for word in row.values()
    )
    return [
        ("operators", len(operators)),
        ("kernels", len(kernels)),
        ("without a failed gate", sum(target.ok for target in operators)),
        ("compared instances", sum(evidence.values())),
        ("with same-machine-code", evidence["same-machine-code"]),
        ("unsafe lines", sum(kernel["unsafe_lines"] for kernel in kernels)),
        ("verdicts pending", sum(len(target.pending) for target in operators)),
    ]


def _architectures(operators: list[TargetResult]) -> list[str]:
    found = {
        architecture
        for target in operators
        for kernel in (target.verdict or {})["kernels"]
        for row in kernel["evidence"].values()
        for architecture in row
    }
    return sorted(found, key=lambda name: (len(name), name))


def _summed(kernel: Mapping[str, Any], architecture: str) -> list[tuple[str, int]]:
    """Evidence of a kernel on an architecture: word and number of signatures, the most frequent first."""
    words = Counter(row[architecture] for row in kernel["evidence"].values() if architecture in row)
    return words.most_common()


def _tests(verdict: Mapping[str, Any]) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """For each place where cases ran: states with their numbers."""
    places = [("CPU", verdict["cpu_test"])]
    places += [(item["device"]["name"], item) for item in verdict.get("gpu_test", ())]
    for name, found in places:
        counts = [(state, found.get(state, 0)) for state in ("passed", "failed", "pending", "not_applicable")]
        yield name, [(state.replace("_", " "), count) for state, count in counts if count]


def _benchmarks(target: TargetResult) -> Iterator[dict[str, Any]]:
    for item in (target.verdict or {}).get("benchmark", ()):
        for case in item["cases"]:
            if case["figures"] is not None:
                yield {"target": target.label, "device": item["device"]["name"], **case}


def _reach(figures: Mapping[str, Any]) -> float:
    return 1.1 * max(abs(float(figures["low"]) - 1), abs(float(figures["high"]) - 1))


def _bar(figures: Mapping[str, Any], span: float) -> Bar:
    left, middle, right = (50 + 50 * (figures[name] - 1) / span for name in ("low", "ratio", "high"))
    return Bar(round(left, 2), round(max(right - left, 0.3), 2), round(middle, 2))
