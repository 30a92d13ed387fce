"""The timing protocol: fast and slow kernels, shifts per load, kernels that change their mind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gpu.fake import FakeDevice
from tests.gpu.planning import bundle, device, scale, vector_case
from tilebuild.gpu.runner import Results, run_plan
from tilebuild.measurement import problems, speed_gate


def benchmark(folder: Path, machine: FakeDevice) -> dict[str, Any]:
    plan = bundle(folder, [vector_case()], ("gpu-test", "benchmark"))
    results = Results(folder / "r.json", plan.digest)
    assert run_plan(folder, plan, results, machine, 1.0, lambda: 0.0)
    row = results.rows["//kernels:scale", "f32_100", "benchmark"]
    assert problems(row) == []
    return row


@pytest.mark.parametrize(
    ("python", "rust", "word", "method"),
    [
        (10_000.0, 10_000.0, "tie", "graph"),
        (10_000.0, 12_000.0, "slower", "graph"),
        (10_000.0, 9_000.0, "faster", "graph"),
        (5e6, 5.5e6, "slower", "single"),
    ],
)
def test_the_word(tmp_path: Path, python: float, rust: float, word: str, method: str) -> None:
    row = benchmark(tmp_path, device(scale(), times={"scale": python, "scale_entry": rust}))
    assert (row["word"], row["method"]) == (word, method)
    assert row["figures"]["ratio"] == pytest.approx(rust / python)
    assert len(row["times"]) * len(row["times"][0]) <= 200


def test_loads_that_differ_hide_a_small_difference(tmp_path: Path) -> None:
    """Python's second load is 1 % off in one trial: 0.8 % between the sides is then no finding."""
    times = {"scale": 10_000.0, "scale_entry": 10_080.0}
    row = benchmark(tmp_path, device(scale(), times=times))
    assert row["word"] == "slower"
    noisy = device(scale(), times=times, shift_per_load=lambda load: 1.01 if load == 5 else 1.0)
    row = benchmark(tmp_path, noisy)
    assert (row["word"], row["figures"]["floor"]) == ("tie", pytest.approx(0.01))


def test_a_slowed_device_decides_nothing(tmp_path: Path) -> None:
    row = benchmark(tmp_path, device(scale(), reasons=("hardware thermal",)))
    assert (row["word"], row["state"]) == ("unstable", "measured")
    assert benchmark(tmp_path, device(scale(), reasons=("power limit",)))["word"] == "tie"


def test_a_kernel_that_is_wrong_after_a_while_is_caught(tmp_path: Path) -> None:
    runs = 0

    def tires(x: Any, y: Any) -> None:
        nonlocal runs
        runs += 1
        if runs > 10:
            y[64] = 77.0

    row = benchmark(tmp_path, device(scale(tires)))
    assert row["state"] == "failed"
    assert row["reasons"] == ["rust computed something else after the timing than before it"]


def row_of(ratio: float, word: str = "slower") -> dict[str, Any]:
    return {"case": "c", "state": "measured", "word": word, "figures": {"ratio": ratio}}


def test_the_speed_gate() -> None:
    assert speed_gate([], 0.95, 0.9)[0] == "pending"
    assert speed_gate([row_of(1.0, "tie"), row_of(1.02)], 0.95, 0.9)[0] == "passed"
    state, mean, reasons = speed_gate([row_of(1.0, "tie"), row_of(1.2)], 0.95, 0.9)
    assert (state, reasons[0]) == ("failed", "c runs at 0.833 of Python's speed")
    assert mean == pytest.approx((1 / 1.2) ** 0.5)
    assert speed_gate([row_of(1.0, "unstable")], 0.95, 0.9)[0] == "pending"
