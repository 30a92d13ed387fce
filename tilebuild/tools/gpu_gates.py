"""What the recorded rows of a GPU are worth to an operator: tests and speed, per device class. Knows no GPU.

A stage without a row is pending, and so is one whose row contradicts itself. Nothing here turns pending into
passed, but for one thing: where both sides have the same machine code, they have the same speed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilebuild.device_class import DeviceClass
from tilebuild.ledger import Ledger, Stage, stages
from tilebuild.measurement import speed_gate

TEST, BENCHMARK = "gpu-test", "benchmark"
#: Gates that can be asked for: tests, speed by identity or figures, speed by figures.
GATES = ("test", "speed", "measured-speed")


@dataclass(frozen=True)
class Planned:
    """What is planned for a device class, and what the ledger knows of it."""

    plan: Mapping[str, Any]
    stages: Sequence[Stage]

    @staticmethod
    def read(plan: Mapping[str, Any], ledger: Ledger) -> Planned:
        """Raises `LedgerError`."""
        return Planned(plan, stages(plan, ledger))

    @property
    def device(self) -> DeviceClass:
        return DeviceClass.from_json(self.plan["device"])

    @property
    def identical(self) -> bool:
        """Whether every case that can run has the same machine code on both sides."""
        entries = [case["entry"] for case in self.plan["cases"] if case["entry"] is not None]
        return bool(entries) and all(entry["identical"] for entry in entries)

    def of(self, stage: str) -> list[Stage]:
        return [found for found in self.stages if found.stage == stage]

    def kernels(self, case: str) -> list[str]:
        """The kernels that a case runs."""
        entry = next(c["entry"] for c in self.plan["cases"] if c["name"] == case)
        return list(dict.fromkeys(step["kernel"] for step in entry["steps"])) if entry else []


def summary_of_tests(planned: Planned) -> dict[str, Any]:
    """The cases of a device class, counted by state."""
    found = planned.of(TEST)
    states = [stage.state for stage in found]
    return {
        "device": planned.plan["device"],
        "passed": states.count("passed"),
        "pending": states.count("pending"),
        "not_applicable": states.count("not-applicable"),
        "cases": [{"name": s.case, "state": s.state, "why": _why(s)} for s in found],
    }


def gate_of_tests(planned: Sequence[Planned]) -> dict[str, str]:
    """The state of the gate over all device classes."""
    found = [stage for item in planned for stage in item.of(TEST)]
    states = {stage.state for stage in found}
    if not planned:
        return _gate(TEST, "not-applicable", "no device class is required (setting gpu.devices)")
    if "pending" in states:
        return _gate(TEST, "pending", "; ".join(_without_verdict(planned, TEST)))
    return _gate(TEST, "passed" if "passed" in states else "not-applicable", "")


def summary_of_benchmarks(planned: Planned, gates: Mapping[str, Any]) -> dict[str, Any]:
    """The benchmark cases of a device class: figures in nanoseconds, ratios Rust over Python."""
    found = planned.of(BENCHMARK)
    rows = [stage.row for stage in found if stage.row is not None]
    _, speed, _ = speed_gate(rows, gates["speed"], gates["row_floor"])
    return {
        "device": planned.plan["device"],
        "identical": planned.identical,
        "speed": speed,
        "measured": len(rows),
        "pending": len(found) - len(rows),
        "cases": [_figures(stage) for stage in found],
    }


def gates_of_speed(
    planned: Sequence[Planned], gates: Mapping[str, Any], *, measured: bool
) -> Iterator[dict[str, Any]]:
    """The speed gate of each device class; identity alone meets it unless figures are asked for."""
    if not planned:
        yield _gate("speed", "not-applicable", "no device class is required (setting gpu.devices)")
    for item in planned:
        yield _speed_gate(item, gates, measured) | {
            "device": item.plan["device"]["name"],
            "required": gates["speed"],
        }


def pending(planned: Sequence[Planned], stage: str) -> Iterator[dict[str, Any]]:
    """Each case that has no verdict: what it runs, where, and the command that makes the verdict."""
    for item in planned:
        for found in item.of(stage):
            if found.state == "pending":
                yield {
                    "target": found.target,
                    "kernels": item.kernels(found.case),
                    "case": found.case,
                    "stage": stage,
                    "device": str(item.device),
                    "why": found.doubt,
                    "command": f"tilebuild bundle export {found.target} --out DIR",
                }


def _speed_gate(planned: Planned, gates: Mapping[str, Any], measured: bool) -> dict[str, Any]:
    found = planned.of(BENCHMARK)
    rows = [stage.row for stage in found if stage.row is not None]
    by_identity = planned.identical and not measured
    if len(rows) < len(found) and not by_identity:
        return _gate("speed", "pending", "; ".join(_without_verdict([planned], BENCHMARK)))
    state, speed, reasons = speed_gate(rows, gates["speed"], gates["row_floor"])
    said = [f"measured {speed:.3f} on {len(rows)} of {len(found)} cases"] if speed is not None else []
    if by_identity or (planned.identical and state == "pending"):  # figures that decide nothing
        words = "met by identity: both sides have the same machine code"
        return _gate("speed", "passed", "; ".join([words, *said, *reasons]))
    if not found:
        return _gate("speed", "not-applicable", "no case has benchmark = True")
    return _gate("speed", state, "; ".join(reasons or said))


def _without_verdict(planned: Sequence[Planned], stage: str) -> Iterator[str]:
    for item in planned:
        cases = [found.case for found in item.of(stage) if found.state == "pending"]
        if cases:
            noun = "case" if len(cases) == 1 else "cases"
            yield f"{len(cases)} {noun} without a verdict on {item.device}: {', '.join(cases)}"


def _figures(stage: Stage) -> dict[str, Any]:
    found = {"name": stage.case, "state": stage.state, "why": _why(stage)}
    if stage.row is None:
        return found | {"word": "", "figures": None}
    row = stage.row
    return found | {
        "word": row["word"],
        "figures": row["figures"],
        "method": row["method"],
        "clocks": row["clocks"],
    }


def _why(stage: Stage) -> str:
    return stage.reason or stage.doubt or "; ".join((stage.row or {}).get("reasons", ()))


def _gate(name: str, state: str, why: str) -> dict[str, Any]:
    return {"gate": name, "state": state, "why": why}
