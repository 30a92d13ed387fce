"""The runner: it resumes, keeps to its budget, and outlives cases that kill or stall it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.planning import bundle, device, scale, vector_case
from tilebuild.gpu.device import DeviceError
from tilebuild.gpu.runner import Results, WrongDevice, give_up, run_plan
from tilebuild.measurement import problems

STAGES = ("gpu-test", "benchmark")
#: Takes the place of the CUDA device in a bundle: NumPy, and kernels that misbehave by the length of their
# array.
STAND_IN = """
import os, sys, time
import numpy as np
from tilebuild.gpu.device import DeviceError
from tilebuild.gpu.fake import FakeDevice, at, numbers

def kernel(arguments, grid):
    x, count, _, y, _, _, factor = numbers(arguments, "QiiQiif")
    if count == 10:
        os._exit(9)
    if count == 20:
        time.sleep(60)
    if count == 30:
        raise DeviceError("cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS", fatal=True)
    at(y, "f4", count)[:] = at(x, "f4", count) * np.float32(factor)

def CudaDevice():
    return FakeDevice({"scale": kernel, "scale_entry": kernel})
"""


def test_it_goes_on_where_it_left_off(tmp_path: Path) -> None:
    plan = bundle(tmp_path, [vector_case(n) for n in (8, 16, 32)], STAGES)
    out = tmp_path / "results.json"
    clock = iter([0.0, 0.5, 9.0, 9.0])
    first = device(scale())
    assert not run_plan(tmp_path, plan, Results(out, plan.digest), first, 1.0, lambda: next(clock))
    kept = Results.open(out, plan.digest)
    assert sorted(row["case"] for row in kept.rows.values()) == ["f32_16", "f32_16", "f32_8", "f32_8"]
    assert not kept.complete

    second = device(scale())
    assert run_plan(tmp_path, plan, kept, second, 1.0, lambda: 0.0)
    assert second.loads * 2 == first.loads
    third = device(scale())
    assert run_plan(tmp_path, plan, Results.open(out, plan.digest), third, 1.0, lambda: 0.0)
    assert third.loads == 0


def test_results_of_another_plan_do_not_count(tmp_path: Path) -> None:
    plan = bundle(tmp_path, [vector_case()])
    out = tmp_path / "results.json"
    run_plan(tmp_path, plan, Results(out, plan.digest), device(scale()), 1.0, lambda: 0.0)
    other = bundle(tmp_path, [vector_case(7)])
    assert Results.open(out, other.digest).rows == {}


def test_another_device_is_refused(tmp_path: Path) -> None:
    plan = bundle(tmp_path, [vector_case()])
    small = device(scale(), device_class={"compute_capability": "9.0", "name": "Other", "sm_count": 1})
    with pytest.raises(WrongDevice, match=r"NVIDIA Fake.*this is Other"):
        run_plan(tmp_path, plan, Results(tmp_path / "r", plan.digest), small, 1.0, lambda: 0.0)


def test_a_fatal_error_is_recorded_before_it_spreads(tmp_path: Path) -> None:
    def lost(arguments: Any, grid: Any) -> None:
        raise DeviceError("gone", fatal=True)

    plan = bundle(tmp_path, [vector_case()], STAGES)
    results = Results(tmp_path / "r.json", plan.digest)
    with pytest.raises(DeviceError):
        run_plan(tmp_path, plan, results, device(lost), 1.0, lambda: 0.0)
    rows = Results.open(tmp_path / "r.json", plan.digest).rows.values()
    assert [(row["state"], row["reasons"]) for row in rows] == [("failed", ["gone"])] * 2
    assert not [fact for row in rows for fact in problems(row)]


def test_what_was_running_is_given_up(tmp_path: Path) -> None:
    plan = bundle(tmp_path, [vector_case()])
    results = Results(tmp_path / "r.json", plan.digest, running=("//kernels:scale", "f32_100"))
    give_up(tmp_path, plan, results, "it stalled")
    (row,) = Results.open(tmp_path / "r.json", plan.digest).rows.values()
    assert (row["state"], row["reasons"], problems(row)) == ("failed", ["it stalled"], [])


def test_a_failed_case_is_not_timed(tmp_path: Path) -> None:
    def wrong(x: Any, y: Any) -> None:
        y[64] = 77.0

    plan = bundle(tmp_path, [vector_case()], STAGES)
    results = Results(tmp_path / "r.json", plan.digest)
    run_plan(tmp_path, plan, results, device(scale(wrong)), 1.0, lambda: 0.0)
    benchmark = results.rows["//kernels:scale", "f32_100", "benchmark"]
    assert benchmark["reasons"][0].startswith("not timed, since the test failed")


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """A bundle whose runner has a device of NumPy. Cases: dies, stalls, loses the device, is right."""
    bundle(tmp_path, [vector_case(n) for n in (10, 20, 30, 40)])
    library = tmp_path / "runner" / "tilebuild" / "gpu"
    (library / "cuda_device.py").write_text(STAND_IN)
    (library / "fake.py").write_text((Path(__file__).parent / "fake.py").read_text())
    return tmp_path


def test_a_bundle_runs_by_itself_and_outlives_its_cases(stand_in: Path, tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    command = [sys.executable, "-I", str(stand_in / "runner"), "--out", str(out), "--case-limit", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", timeout=60)
    assert done.returncode == 3, done.stderr
    rows = {row["case"]: row for row in json.loads(out.read_text())["rows"]}
    assert {name: row["reasons"] for name, row in rows.items()} == {
        "f32_10": ["the runner died in this case (status 9)"],
        "f32_20": ["the case did not end within 3 s"],
        "f32_30": ["cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS"],
        "f32_40": [],
    }
    assert "3 failed, 1 passed" in done.stdout


def test_a_machine_without_a_gpu_says_so(tmp_path: Path) -> None:
    bundle(tmp_path, [vector_case()])
    (tmp_path / "runner" / "tilebuild" / "gpu" / "cuda_device.py").write_text("import no_such_module\n")
    command = [sys.executable, "-I", str(tmp_path / "runner"), "--out", str(tmp_path / "r.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr.strip()) == (
        36,
        "NumPy and CuPy are needed: No module named 'no_such_module'",
    )


def test_a_bundle_needs_neither_pydantic_nor_the_tool(tmp_path: Path) -> None:
    bundle(tmp_path, [vector_case()])
    probe = (
        "import sys; sys.path.insert(0, sys.argv[1]); import tilebuild.gpu.runner as r;"
        "print(r.__file__); print(*sorted({m.split('.')[0] for m in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", probe, str(tmp_path / "runner")],
        capture_output=True,
        text=True,
        check=True,
    )
    path, modules = done.stdout.splitlines()
    assert path.startswith(str(tmp_path))
    assert not {"pydantic", "ml_dtypes", "click"} & set(modules.split())
