"""The correctness protocol against kernels that are wrong in one way each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.gpu.fake import at, numbers
from tests.gpu.planning import Kernel, bundle, device, scale, vector_case
from tilebuild.gpu.runner import Results, run_plan
from tilebuild.measurement import problems


def run(folder: Path, rust: Kernel, python: Kernel | None = None, **plan: Any) -> dict[str, Any]:
    plan = {"cases": [vector_case()]} | plan
    planned = bundle(folder, **plan)
    results = Results(folder / "results.json", planned.digest)
    assert run_plan(folder, planned, results, device(rust, python), 1.0, lambda: 0.0)
    (row,) = results.rows.values()
    assert problems(row) == []
    return row


def test_a_right_kernel_passes(tmp_path: Path) -> None:
    row = run(tmp_path, scale())
    assert (row["state"], row["reasons"]) == ("passed", [])
    (output,) = row["outputs"]
    assert output["python"]["sha256"] == output["rust"]["sha256"]
    assert all(c["arg1"]["outside"] == 100 for c in row["controls"].values())


def off_by_one(x: Any, y: Any) -> None:
    y[65:165] = y[64:164].copy()


def unwritten(x: Any, y: Any) -> None:
    y[70] = np.frombuffer(b"\xff" * 4, "f4")[0]


def guard(x: Any, y: Any) -> None:
    y[64 + 100 + 3] = 1.0


def guard_before(x: Any, y: Any) -> None:
    y[60] = 1.0


def input_changed(x: Any, y: Any) -> None:
    x[64] += 1.0


def one_element(x: Any, y: Any) -> None:
    y[64 + 41] *= 1.01


def one_ulp(x: Any, y: Any) -> None:
    y[64 + 7] = np.nextafter(y[64 + 7], np.float32(9))


def zeros(x: Any, y: Any) -> None:
    y[64:164] = 0


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (off_by_one, "out of bounds, worst at"),
        (unwritten, "1 of 100 elements out of bounds"),
        (guard, "rust wrote 4 bytes outside its arrays"),
        (guard_before, "rust wrote 4 bytes outside its arrays"),
        (input_changed, "rust changed the input arg0"),
        (one_element, "worst at [41]"),
        (one_ulp, "the machine code is the same, the bits are not"),
        (zeros, "100 of 100 elements out of bounds"),
    ],
)
def test_a_wrong_kernel_is_caught(tmp_path: Path, edit: Callable[[Any, Any], None], reason: str) -> None:
    row = run(tmp_path, scale(edit))
    assert row["state"] == "failed"
    assert reason in "; ".join(row["reasons"])


def test_an_element_that_is_left_alone_is_named(tmp_path: Path) -> None:
    def lazy(arguments: Any, grid: Any) -> None:
        before: list[Any] = []
        scale(lambda x, y: before.append(y))(arguments, grid)

    def skips_one(arguments: Any, grid: Any) -> None:
        y_at = numbers(arguments, "QiiQiif")[3]
        kept = at(y_at, "f4", 100)[50].copy()
        scale()(arguments, grid)
        at(y_at, "f4", 100)[50] = kept

    assert run(tmp_path, lazy)["state"] == "passed"
    row = run(tmp_path, skips_one)
    assert row["outputs"][0]["rust"]["unwritten"] == 1
    assert "1 of 100 elements were never written" in "; ".join(row["reasons"])


def test_a_result_that_depends_on_old_memory_is_caught(tmp_path: Path) -> None:
    def accumulates(x: Any, y: Any) -> None:
        if not np.isnan(y[64 + 100]):
            one_ulp(x, y)

    row = run(tmp_path, scale(accumulates))
    assert "differs between two runs" in "; ".join(row["reasons"])


def test_bits_may_differ_where_machine_code_does(tmp_path: Path) -> None:
    row = run(tmp_path, scale(one_ulp), identical=False)
    assert row["state"] == "passed"


def test_a_python_kernel_outside_the_bound_is_said_to_be_so(tmp_path: Path) -> None:
    row = run(tmp_path, scale(one_element), scale(one_element))
    assert any(reason.startswith("python's arg1") for reason in row["reasons"])


def test_a_case_that_zeros_pass_proves_nothing(tmp_path: Path) -> None:
    def nothing(arguments: Any, grid: Any) -> None:
        scale(zeros)(arguments, grid)

    zero = b"def scale(xp, *, x):\n    return xp.zeros_like(x)\n"
    row = run(tmp_path, nothing, nothing, reference=zero)
    assert row["reasons"] == ["the test proves nothing: a kernel that writes zeros passes it"]


def test_without_a_reference_the_sides_are_compared(tmp_path: Path) -> None:
    assert run(tmp_path, scale(), reference=None)["state"] == "passed"
    row = run(tmp_path, scale(one_element), reference=None, identical=False)
    assert row["state"] == "failed"


@pytest.mark.parametrize(
    ("reference", "fact"),
    [
        (b"def scale(xp, *, x, z):\n    return x\n", "asks for z"),
        (b"def scale(xp, *, x):\n    return x[1:]\n", "the shape (99,), the case has (100,)"),
        (b"def scale(xp, *, x):\n    return x, x\n", "returns 2 arrays, the case has 1"),
        (b"def scale(xp, *, x):\n    return 1 / 0\n", "ZeroDivisionError"),
        (b"def other(xp):\n    pass\n", "has no function 'scale'"),
    ],
)
def test_a_broken_reference_fails_the_case(tmp_path: Path, reference: bytes, fact: str) -> None:
    row = run(tmp_path, scale(), reference=reference)
    assert row["state"] == "failed"
    assert fact in row["reasons"][0]


def test_strides_offsets_and_gaps(tmp_path: Path) -> None:
    case = vector_case()
    case["arrays"]["arg0"] |= {"offset": 3}
    case["arrays"]["arg1"] |= {"shape": [100], "strides": [2], "offset": 1}

    def strided(gap: bool) -> Kernel:
        def kernel(arguments: Any, grid: Any) -> None:
            x_at, count, _, y_at, _, stride, factor = numbers(arguments, "QiiQiif")
            assert (x_at % 256, y_at % 256, stride) == (12, 4, 2)
            y = at(y_at, "f4", 2 * count)
            y[::2] = at(x_at, "f4", count) * np.float32(factor)
            if gap:
                y[5] = 1.0

        return kernel

    assert run(tmp_path, strided(False), strided(False), cases=[case])["state"] == "passed"
    row = run(tmp_path, strided(True), strided(False), cases=[case])
    assert row["reasons"] == ["rust wrote 4 bytes outside its arrays"]


def test_nothing_stays_loaded(tmp_path: Path) -> None:
    planned = bundle(tmp_path, [vector_case()], ("gpu-test", "benchmark"))
    machine = device(scale())
    run_plan(tmp_path, planned, Results(tmp_path / "r.json", planned.digest), machine, 1.0, lambda: 0.0)
    assert machine.loaded == 0
    assert machine.loads > 30
