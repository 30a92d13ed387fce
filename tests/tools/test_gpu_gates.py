"""Gates that a GPU decides: what is recorded, what is pending, and what identity settles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tilebuild.ledger import Stage
from tilebuild.tools.gpu_gates import (
    Planned,
    gate_of_tests,
    gates_of_speed,
    pending,
    summary_of_benchmarks,
    summary_of_tests,
)

DEVICE = {"name": "NVIDIA Fake", "compute_capability": "9.0", "sm_count": 4}
GATES = {"speed": 0.95, "row_floor": 0.90}


def row(state: str, ratio: float = 1.0, word: str = "tie", case: str = "a") -> dict[str, Any]:
    figures = {"python_ns": 100.0, "rust_ns": 100.0 * ratio, "ratio": ratio, "low": ratio, "high": ratio}
    clocks = {"sm_mhz": [1980, 1980]}
    return {"case": case, "state": state, "reasons": [], "word": word, "figures": figures} | {
        "method": "graph",
        "clocks": clocks,
    }


def planned(
    *stages: tuple[str, str, Mapping[str, Any] | None], identical: bool = True, reason: str = ""
) -> Planned:
    """Stages are (case, stage, row or nothing)."""
    entry = {"identical": identical, "steps": [{"kernel": "scale"}, {"kernel": "shift"}]}
    cases = [{"name": case, "entry": None if reason else entry} for case, _, _ in stages]
    found = [Stage("//k:op", case, stage, DEVICE, "key", item, reason) for case, stage, item in stages]
    return Planned({"device": DEVICE, "cases": cases}, found)


def speed(*items: Planned, measured: bool = False) -> Sequence[Mapping[str, Any]]:
    return list(gates_of_speed(items, GATES, measured=measured))


def test_all_passed() -> None:
    found = planned(("a", "gpu-test", row("passed")), ("b", "gpu-test", row("passed")))
    assert gate_of_tests([found])["state"] == "passed"
    assert summary_of_tests(found)["passed"] == 2
    assert list(pending([found], "gpu-test")) == []


def test_one_pending_leaves_the_gate_pending() -> None:
    found = planned(("a", "gpu-test", row("passed")), ("b", "gpu-test", None))
    gate = gate_of_tests([found])
    assert gate["state"] == "pending"
    expected = "1 case without a verdict on NVIDIA Fake (compute capability 9.0, 4 SMs): b"
    assert gate["why"] == expected
    (item,) = pending([found], "gpu-test")
    assert item["kernels"] == ["scale", "shift"]
    assert item["command"] == "tilebuild bundle export //k:op --out DIR"


def test_nothing_required_and_nothing_that_can_run_are_not_applicable() -> None:
    assert gate_of_tests([])["state"] == "not-applicable"
    assert "gpu.devices" in speed()[0]["why"]
    unfit = planned(("a", "gpu-test", None), reason="there is no rust cubin")
    assert gate_of_tests([unfit])["state"] == "not-applicable"
    assert summary_of_tests(unfit)["cases"][0]["why"] == "there is no rust cubin"


def test_identity_meets_the_speed_gate_without_figures() -> None:
    (gate,) = speed(planned(("a", "benchmark", None)))
    assert gate["state"] == "passed"
    assert "met by identity" in gate["why"]


def test_identity_is_not_enough_when_figures_are_asked_for() -> None:
    assert speed(planned(("a", "benchmark", None)), measured=True)[0]["state"] == "pending"
    (gate,) = speed(planned(("a", "benchmark", row("measured"))), measured=True)
    assert (gate["state"], gate["why"]) == ("passed", "measured 1.000 on 1 of 1 cases")


def test_figures_that_decide_nothing_leave_it_to_identity() -> None:
    unstable = ("a", "benchmark", row("measured", 1.3, "unstable"))
    assert speed(planned(unstable), measured=True)[0]["state"] == "passed"
    assert speed(planned(unstable, identical=False), measured=True)[0]["state"] == "pending"


@pytest.mark.parametrize(("ratio", "state"), [(1.0, "passed"), (1.04, "passed"), (1.06, "failed")])
def test_different_code_needs_figures(ratio: float, state: str) -> None:
    one = ("a", "benchmark", row("measured", ratio))
    assert speed(planned(one, identical=False))[0]["state"] == state
    waiting = planned(one, ("b", "benchmark", None), identical=False)
    assert speed(waiting)[0]["state"] == "pending"
    assert summary_of_benchmarks(waiting, GATES)["pending"] == 1


def test_different_code_without_benchmarks() -> None:
    assert speed(planned(identical=False))[0]["state"] == "not-applicable"
