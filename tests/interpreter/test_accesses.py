"""Views, pointers, atomics and control flow: what programs do to memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.interpreter import programs
from tests.interpreter.harness import Bench, compile_kernel, with_list
from tilebuild.interpreter.frame import Fault, TooLarge
from tilebuild.interpreter.machine import run

N = programs.N
F32 = np.float32


@pytest.mark.parametrize(("mode", "fill"), [(0, 0.0), (1, -np.inf), (2, np.nan), (3, np.nan)])
def test_lanes_beyond_the_array_hold_the_padding(mode: int, fill: float, tmp_path: Path) -> None:
    program = compile_kernel(programs.padded, [("f32", 1), ("f32", 1), mode], tmp_path)
    bench = Bench()
    x = np.arange(20, dtype=F32)
    bench.launch(program, (2,), bench.array("x", "f32", x), bench.array("y", "f32", (32,)))
    np.testing.assert_array_equal(bench.read("y"), np.concatenate([x, np.full(12, fill, dtype=F32)]))
    assert bench.last is not None
    assert bench.last.saw_undetermined == (mode == 3)


def test_stores_beyond_the_array_are_dropped(tmp_path: Path) -> None:
    program = compile_kernel(programs.padded, [("f32", 1), ("f32", 1), 0], tmp_path)
    bench = Bench()
    x = np.arange(20, dtype=F32)
    y = bench.array("y", "f32", (20,))
    bench.launch(program, (2,), bench.array("x", "f32", x), y)
    np.testing.assert_array_equal(bench.read("y"), x)
    assert bench.memory.written(y).all()


def test_axes_are_exchanged_by_the_view(tmp_path: Path) -> None:
    program = compile_kernel(programs.transposed, [("f32", 2), ("f32", 2)], tmp_path)
    bench = Bench()
    x = np.arange(128, dtype=F32).reshape(16, 8)
    bench.launch(program, (1,), bench.array("x", "f32", x), bench.array("y", "f32", (8, 16)))
    np.testing.assert_array_equal(bench.read("y"), x.T)


def test_windows_overlap(tmp_path: Path) -> None:
    program = compile_kernel(programs.overlapping, [("f32", 1), ("f32", 2)], tmp_path)
    bench = Bench()
    x = np.arange(1, 19, dtype=F32)
    bench.launch(program, (5,), bench.array("x", "f32", x), bench.array("y", "f32", (5, 8)))
    extended = np.concatenate([x, np.zeros(8, dtype=F32)])
    want = [extended[4 * i : 4 * i + 8] for i in range(5)]
    np.testing.assert_array_equal(bench.read("y"), want)


def test_rows_are_picked_by_a_gather_view(tmp_path: Path) -> None:
    program = compile_kernel(programs.picked_rows, [("f32", 2), ("i32", 1), ("f32", 2)], tmp_path)
    bench = Bench()
    x = np.arange(60, dtype=F32).reshape(10, 6)
    rows = np.array([7, 0, 10, 3])
    arrays = bench.array("x", "f32", x), bench.array("r", "i32", rows), bench.array("y", "f32", (4, 8))
    bench.launch(program, (1,), *arrays)
    want = np.zeros((4, 8), dtype=F32)
    want[[0, 1, 3], :6] = x[[7, 0, 3]]
    np.testing.assert_array_equal(bench.read("y"), want)


def test_gaps_of_strided_arrays_are_skipped(tmp_path: Path) -> None:
    program = compile_kernel(programs.transposed, [("f32", 2), ("f32", 2)], tmp_path)
    bench = Bench()
    x = np.arange(128, dtype=F32).reshape(16, 8)
    arrays = bench.array("x", "f32", x, (20, 2)), bench.array("y", "f32", (8, 16), (3, 30))
    bench.launch(program, (1,), *arrays)
    np.testing.assert_array_equal(bench.read("y"), x.T)


def test_a_gather_masks_what_is_out_of_range(tmp_path: Path) -> None:
    program = compile_kernel(programs.gathered, [("i32", 1), ("i32", 1), ("i32", 1)], tmp_path)
    bench = Bench()
    index = np.arange(-4, 60)
    arrays = bench.array("x", "i32", np.arange(50) * 3), bench.array("i", "i32", index)
    bench.launch(program, (1,), *arrays, bench.array("y", "i32", (N,)))
    want = np.where((index >= 0) & (index < 50), index * 3, -1)
    np.testing.assert_array_equal(bench.read("y"), want)


@pytest.mark.parametrize(
    ("index", "fact"),
    [
        (50, "reads 4 bytes 0 bytes after the end of the array 'x'"),
        (-1, "reads 4 bytes 4 bytes before the array 'x'"),
    ],
)
def test_an_unchecked_gather_out_of_range_is_a_fault(index: int, fact: str, tmp_path: Path) -> None:
    program = compile_kernel(programs.unchecked, [("i32", 1), ("i32", 1), ("i32", 1)], tmp_path)
    bench = Bench()
    indices = np.zeros(N, dtype=np.int32)
    indices[5] = index
    arrays = bench.array("x", "i32", np.arange(50)), bench.array("i", "i32", indices)
    with pytest.raises(Fault, match=fact) as caught:
        bench.launch(program, (1,), *arrays, bench.array("y", "i32", (N,)))
    assert caught.value.operation == "load_ptr_tko"
    assert list(program.walk())[caught.value.index].name == "load_ptr_tko"


def test_atomics_see_every_lane(tmp_path: Path) -> None:
    program = compile_kernel(programs.histogram, [("i32", 1), ("i32", 1)], tmp_path)
    bench = Bench()
    x = np.random.default_rng(1).integers(0, 10, 2 * N)
    bench.launch(program, (2,), bench.array("x", "i32", x), bench.array("c", "i32", np.zeros(10)))
    np.testing.assert_array_equal(bench.read("c"), np.bincount(x, minlength=10))


@pytest.mark.parametrize("dtype", ["i32", "u32"])
def test_atomic_extremes_read_the_sign(dtype: str, tmp_path: Path) -> None:
    program = compile_kernel(programs.atomic_extremes, [(dtype, 1)] * 4, tmp_path)
    bench = Bench()
    x = np.random.default_rng(2).integers(-1000, 1000, N).astype(np.int32)
    places = [bench.array(name, dtype, np.array([x[0]])) for name in ("largest", "smallest", "last")]
    bench.launch(program, (1,), bench.array("x", dtype, x), *places)
    seen = x if dtype == "i32" else x.view(np.uint32)
    got = [bench.read(name)[0] for name in ("largest", "smallest", "last")]
    want = [np.array([v]).view(np.int32)[0] for v in (seen.max(), seen.min(), seen[-1])]
    assert got == want


def test_a_lock_is_taken_and_released(tmp_path: Path) -> None:
    program = compile_kernel(programs.locked, [("i32", 1), ("i32", 1)], tmp_path)
    bench = Bench()
    bench.launch(program, (10,), bench.array("l", "i32", np.zeros(1)), bench.array("v", "i32", np.zeros(1)))
    assert bench.read("v")[0] == 45


def test_a_lock_that_nobody_releases_exhausts_the_budget(tmp_path: Path) -> None:
    program = compile_kernel(programs.locked, [("i32", 1), ("i32", 1)], tmp_path)
    bench = Bench()
    lock, value = bench.array("l", "i32", np.ones(1)), bench.array("v", "i32", np.zeros(1))
    words = [
        np.array(w, dtype=t) for r in (lock, value) for w, t in ((r.address, "i8"), (1, "i4"), (1, "i4"))
    ]
    with pytest.raises(TooLarge):
        run(program, (1, 1, 1), words, bench.memory, budget=1_000_000)


@pytest.mark.parametrize("n", [0, 3, 10])
def test_loops_run_as_often_as_they_should(n: int, tmp_path: Path) -> None:
    program = compile_kernel(programs.strided_sum, [("i32", 1), ("i32", 1), "i32"], tmp_path)
    bench = Bench()
    x = np.arange(10) + 1
    bench.launch(program, (4,), bench.array("x", "i32", x), bench.array("y", "i32", (4,)), n)
    np.testing.assert_array_equal(bench.read("y"), [x[block:n:4].sum() for block in range(4)])


@pytest.mark.parametrize("first", [0, 4, 9])
def test_a_loop_ends_early(first: int, tmp_path: Path) -> None:
    program = compile_kernel(programs.first_negative, [("f32", 1), ("i32", 1), "i32"], tmp_path)
    bench = Bench()
    x = np.ones(9)
    x[first:] = -1
    bench.launch(program, (1,), bench.array("x", "f32", x), bench.array("y", "i32", (1,)), 9)
    assert bench.read("y")[0] == first


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_kernel_returns_early(sign: float, tmp_path: Path) -> None:
    program = compile_kernel(programs.early_return, [("f32", 1), ("f32", 1)], tmp_path)
    bench = Bench()
    y = bench.array("y", "f32", (N,))
    bench.launch(program, (1,), bench.array("x", "f32", np.full(N, sign)), y)
    assert bench.memory.written(y).all() == (sign > 0)


def test_a_list_of_arrays_is_a_table(tmp_path: Path) -> None:
    program = compile_kernel(programs.sum_of_list, [with_list("f32", 1), ("f32", 1)], tmp_path)
    bench = Bench()
    contents = [np.random.default_rng(i).standard_normal(N).astype(F32) for i in range(3)]
    regions = [bench.array(f"x{i}", "f32", content) for i, content in enumerate(contents)]
    bench.launch(program, (1,), regions, bench.array("y", "f32", (N,)))
    np.testing.assert_array_equal(bench.read("y"), contents[0] + contents[1] + contents[2])


def test_a_broken_promise_is_a_fault(tmp_path: Path) -> None:
    program = compile_kernel(programs.padded, [("f32", 1), ("f32", 1), 0], tmp_path)
    bench = Bench()
    x, y = bench.array("x", "f32", np.ones(16)), bench.array("y", "f32", (16,))
    words = [np.array(w, dtype=t) for r in (x, y) for w, t in ((r.address, "i8"), (-16, "i4"), (1, "i4"))]
    with pytest.raises(
        Fault, match="an assumption does not hold: that a value lies between 0 and inf; it is -16"
    ):
        run(program, (1, 1, 1), words, bench.memory)


def test_a_view_is_updated_atomically(tmp_path: Path) -> None:
    program = compile_kernel(programs.summed_by_view, [("f32", 1), ("f32", 1)], tmp_path)
    bench = Bench()
    x = np.arange(40, dtype=F32)
    bench.launch(program, (3,), bench.array("x", "f32", x), bench.array("t", "f32", np.ones(10)))
    padded = np.concatenate([x, np.zeros(8, dtype=F32)]).reshape(3, 16)
    np.testing.assert_array_equal(bench.read("t"), padded.sum(axis=0)[:10] + 1)


def test_an_assertion_that_fails_is_a_fault(tmp_path: Path) -> None:
    program = compile_kernel(programs.told, [("i32", 1)], tmp_path)
    bench = Bench()
    bench.launch(program, (1,), bench.array("x", "i32", np.array([3])))
    with pytest.raises(Fault, match="the assertion 'must be positive' fails"):
        bench.launch(program, (1,), bench.array("y", "i32", np.array([-3])))
