"""Runs a plan on a device and writes one result file: after every case, within a budget, where it left off.

Knows no driver. A case that was begun and never finished (the process died, or was killed for taking too
long) is named in the file; whoever watches the process turns it into a failed row with `give_up`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from tilebuild.gpu.arguments import ArgumentError
from tilebuild.gpu.check import CaseProblem, check
from tilebuild.gpu.cubin import CubinError
from tilebuild.gpu.device import Device, DeviceError
from tilebuild.gpu.plan import BENCHMARK, SIDES, TEST, Plan, PlannedCase
from tilebuild.gpu.timing import measure
from tilebuild.measurement import PROTOCOLS, judge, seal

SCHEMA = 1


class WrongDevice(Exception):
    """The plan requires a device of another class."""


@dataclass
class Results:
    """The result file: rows by (target, case, stage), and the case that is being run."""

    path: Path
    plan: str
    device: Mapping[str, Any] | None = None
    observed: Mapping[str, Any] = field(default_factory=dict)
    rows: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    running: tuple[str, str] | None = None
    complete: bool = False

    @staticmethod
    def open(path: Path, plan: str) -> Results:
        """What an earlier run of the same plan left behind, or an empty file."""
        results = Results(path, plan)
        if not path.exists():
            return results
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.get("plan") != plan:
            return results
        results.device, results.observed = data["device"], data["observed"]
        results.rows = {(r["target"], r["case"], r["stage"]): r for r in data["rows"]}
        results.running = tuple(data["running"]) if data["running"] else None
        results.complete = data["complete"]
        return results

    def add(self, row: Mapping[str, Any]) -> None:
        self.rows[(row["target"], row["case"], row["stage"])] = seal(row)

    def has(self, case: PlannedCase, stage: str) -> bool:
        row = self.rows.get((case.target, case.name, stage))
        return row is not None and row["key"] == case.keys[stage]

    def write(self) -> None:
        """Replaces the file in one step."""
        document = {
            "schema": SCHEMA,
            "plan": self.plan,
            "device": self.device,
            "observed": self.observed,
            "complete": self.complete,
            "running": self.running,
            "rows": [self.rows[key] for key in sorted(self.rows)],
        }
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        beside.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        beside.replace(self.path)


def run_plan(
    folder: Path, plan: Plan, results: Results, device: Device, deadline: float, now: Callable[[], float]
) -> bool:
    """Runs what the results lack until the deadline. Returns whether everything is there.

    Raises `WrongDevice`, and `DeviceError` after an error that leaves the device unusable; the row is
    written.
    """
    if plan.device is not None and dict(plan.device) != dict(device.device_class):
        raise WrongDevice(f"the plan is for {describe(plan.device)}, this is {describe(device.device_class)}")
    results.device, results.observed = device.device_class, device.observed
    for case in plan.cases:
        if not _open_stages(case, results):
            continue
        if now() >= deadline:
            break
        results.running = (case.target, case.name)
        results.write()
        try:
            _run_case(folder, case, results, device)
        finally:
            results.running = None
            results.write()
    results.complete = not any(_open_stages(case, results) for case in plan.cases)
    results.write()
    return results.complete


def give_up(folder: Path, plan: Plan, results: Results, fact: str) -> None:
    """Records the case that was being run as failed, in every stage that it has no row for."""
    for case in plan.cases:
        if (case.target, case.name) == results.running:
            for stage in _open_stages(case, results):
                results.add(_frame(folder, case, stage, results.observed) | {"error": fact})
    results.running = None
    results.write()


def describe(device_class: Mapping[str, Any]) -> str:
    """A device class in words."""
    return "{name}, compute capability {compute_capability}, {sm_count} SMs".format(**device_class)


def _open_stages(case: PlannedCase, results: Results) -> list[str]:
    return [stage for stage in case.keys if not results.has(case, stage)]


def _run_case(folder: Path, case: PlannedCase, results: Results, device: Device) -> None:
    """Tests a case, then times it if that was asked for and the test passed."""
    stages = _open_stages(case, results)
    frames = {stage: _frame(folder, case, stage, device.observed) for stage in (TEST, BENCHMARK)}
    try:
        row, memory, sides = check(device, folder, case)
        tested = frames[TEST] | row
        if TEST in stages:
            results.add(tested)
        if BENCHMARK in stages:
            verdict = judge(tested)
            if verdict.state == "failed":
                wrong = "not timed, since the test failed: " + "; ".join(verdict.reasons)
                results.add(frames[BENCHMARK] | {"error": wrong})
            else:
                results.add(frames[BENCHMARK] | measure(device, folder, case, memory, sides))
    except (CaseProblem, ArgumentError, CubinError, DeviceError) as error:
        for stage in _open_stages(case, results):
            results.add(frames[stage] | {"error": str(error)})
        if isinstance(error, DeviceError) and error.fatal:
            raise


def _frame(folder: Path, case: PlannedCase, stage: str, observed: Mapping[str, Any]) -> dict[str, Any]:
    """What every row begins with."""
    return {
        "target": case.target,
        "case": case.name,
        "stage": stage,
        "key": case.keys.get(stage, ""),
        "protocol": PROTOCOLS[stage],
        "cubins": {side: _digests(folder, case.cubins(side)) for side in SIDES},
        "observed": dict(observed),
    }


def _digests(folder: Path, cubins: Sequence[str]) -> list[str]:
    return [sha256((folder / cubin).read_bytes()).hexdigest() for cubin in cubins]
