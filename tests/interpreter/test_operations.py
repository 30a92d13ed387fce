"""Each group of operations, in kernels compiled by the real front end, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cuda.tile as ct
import ml_dtypes
import numpy as np
import pytest

from tests.interpreter import programs
from tests.interpreter.harness import Bench, compile_kernel
from tilebuild.interpreter.machine import HANDLERS
from tilebuild.tileir.operations import ENDS, REGION_OPERATIONS, SYNTAX

N = programs.N
F32 = np.float32
GENERATOR = np.random.default_rng(7)
#: Numbers with every kind of trouble: zeros of both signs, subnormals, infinities, NaN, the largest number.
FLOATS = np.concatenate(
    [
        np.array([0.0, -0.0, 1e-45, -1e-40, np.inf, -np.inf, np.nan, 3.4e38, 1.0, -1.0, 0.5, 2.0], dtype=F32),
        (GENERATOR.standard_normal(N - 12) * 10).astype(F32),
    ]
)
OTHER_FLOATS = np.roll(FLOATS, 5)
POSITIVE = np.abs(GENERATOR.standard_normal(N)).astype(F32) + F32(0.01)
INTEGERS = np.concatenate(
    [np.array([0, 1, -1, 2**31 - 1, -(2**31)]), GENERATOR.integers(-100, 100, N - 5)]
).astype(np.int32)
DIVISORS = np.where(np.roll(INTEGERS, 3) == 0, 7, np.roll(INTEGERS, 3)).astype(np.int32)
SHIFTS = np.arange(N, dtype=np.int32) % 40


def wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function in float64, rounded once to float32."""
    return lambda *tiles: function(*(t.astype(np.float64) for t in tiles)).astype(F32)


def test_every_operation_of_the_language_has_a_row() -> None:
    # Nothing emits `alloca` yet; it is refused by name.
    assert (set(SYNTAX) | REGION_OPERATIONS) - ENDS - set(HANDLERS) == {"alloca"}


@pytest.mark.parametrize(
    ("function", "expected", "x"),
    [
        (ct.exp, wide(np.exp), FLOATS),
        (ct.exp2, wide(np.exp2), FLOATS),
        (ct.log, wide(np.log), POSITIVE),
        (ct.log2, wide(np.log2), POSITIVE),
        (ct.sin, wide(np.sin), POSITIVE),
        (ct.cosh, wide(np.cosh), POSITIVE),
        (ct.tanh, wide(np.tanh), FLOATS),
        (ct.sqrt, np.sqrt, FLOATS),
        (ct.rsqrt, wide(lambda v: 1 / np.sqrt(v)), POSITIVE),
        (ct.floor, np.floor, FLOATS),
        (ct.ceil, np.ceil, FLOATS),
        (ct.abs, np.abs, FLOATS),
        (ct.negative, np.negative, FLOATS),
        (programs.cube, wide(lambda v: v**3), POSITIVE),
        (programs.through_tf32, lambda v: _tf32(v), POSITIVE),
    ],
    ids=str,
)
def test_functions(
    function: Any, expected: Callable[..., Any], x: Any, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    got = _run(programs.unary(function), [("f32", x)], ("f32", (N,)), tmp_path)
    np.testing.assert_array_equal(got, expected(x))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (programs.add, np.add),
        (ct.sub, np.subtract),
        (ct.mul, np.multiply),
        (ct.truediv, np.divide),
        (ct.maximum, np.fmax),
        (ct.minimum, np.fmin),
        (programs.largest_with_nan, np.maximum),
        (ct.atan2, wide(np.arctan2)),
    ],
    ids=str,
)
def test_float_pairs(
    function: Any, expected: Callable[..., Any], tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    got = _run(programs.binary(function), [("f32", FLOATS), ("f32", OTHER_FLOATS)], ("f32", (N,)), tmp_path)
    np.testing.assert_array_equal(got, expected(FLOATS, OTHER_FLOATS))


def test_an_unequal_comparison_holds_for_nan(tmp_path: Path) -> None:
    inputs = [("f32", FLOATS), ("f32", FLOATS)]
    assert _run(programs.binary(programs.not_equal), inputs, ("i32", (N,)), tmp_path).sum() == 1
    assert _run(programs.binary(programs.less), inputs, ("i32", (N,)), tmp_path).sum() == 0


def test_subnormals_are_flushed_where_asked(tmp_path: Path) -> None:
    ones = np.ones(N, dtype=F32)
    got = _run(
        programs.binary(programs.multiply_flushed), [("f32", FLOATS), ("f32", ones)], ("f32", (N,)), tmp_path
    )
    assert got[2] == 0.0
    assert got[3] == 0.0
    assert np.signbit(got[3])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (programs.add, lambda a, b: a + b),
        (ct.mul, lambda a, b: a * b),
        (programs.floor_divide, lambda a, b: a // b),
        (programs.ceil_divide, lambda a, b: -(-a // b)),
        (programs.modulo, lambda a, b: a % b),
        (ct.maximum, max),
        (programs.exclusive_or, lambda a, b: a ^ b),
        (programs.less, lambda a, b: int(a < b)),
    ],
    ids=str,
)
def test_integer_pairs(function: Any, expected: Callable[[int, int], int], tmp_path: Path) -> None:
    got = _run(programs.binary(function), [("i32", INTEGERS), ("i32", DIVISORS)], ("i32", (N,)), tmp_path)
    want = [_wrap(expected(int(a), int(b))) for a, b in zip(INTEGERS, DIVISORS, strict=True)]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["i32", "u32"])
def test_shifts_beyond_the_width_leave_nothing_but_the_sign(dtype: str, tmp_path: Path) -> None:
    inputs = [(dtype, INTEGERS), (dtype, SHIFTS)]
    left = _run(programs.binary(programs.shift_left), inputs, (dtype, (N,)), tmp_path)
    right = _run(programs.binary(programs.shift_right), inputs, (dtype, (N,)), tmp_path)
    for x, steps, shifted_left, shifted_right in zip(INTEGERS, SHIFTS, left, right, strict=True):
        value = int(x) & 0xFFFFFFFF if dtype == "u32" else int(x)
        assert int(shifted_left) == _wrap(int(x) << int(steps))
        assert int(shifted_right) == _wrap(value >> int(steps))


@pytest.mark.parametrize(
    ("function", "source", "target", "x", "expected"),
    [
        (programs.to_i32, "f32", "i32", FLOATS, lambda v: _truncated(v, np.int32)),
        (programs.to_i8, "i32", "i8", INTEGERS, lambda v: v.astype(np.int8)),
        (programs.to_i64, "i32", "i64", INTEGERS, lambda v: v.astype(np.int64)),
        (programs.to_i64, "u32", "i64", INTEGERS, lambda v: v.view(np.uint32).astype(np.int64)),
        (programs.to_f32, "i32", "f32", INTEGERS, lambda v: v.astype(F32)),
        (programs.to_f16, "f32", "f16", FLOATS, lambda v: v.astype(np.float16)),
        (programs.to_bf16, "f32", "bf16", FLOATS, lambda v: v.astype(ml_dtypes.bfloat16)),
        (programs.to_f8e4m3fn, "f32", "f8e4m3fn", POSITIVE, lambda v: v.astype(ml_dtypes.float8_e4m3fn)),
        (programs.bits, "f32", "i32", FLOATS, lambda v: v.view(np.int32)),
    ],
    ids=lambda value: value.__name__ if hasattr(value, "__name__") else None,
)
def test_conversions(
    function: Any,
    source: str,
    target: str,
    x: Any,
    expected: Callable[[Any], Any],
    tmp_path: Path,
    recwarn: pytest.WarningsRecorder,
) -> None:
    got = _run(programs.unary(function), [(source, x)], (target, (N,)), tmp_path)
    np.testing.assert_array_equal(got.astype(np.float64), expected(x).astype(np.float64))


def test_fused_multiply_add_rounds_once(tmp_path: Path) -> None:
    x = np.full(N, 1 + 2**-12, dtype=F32)
    z = np.full(N, -(1 + 2**-11), dtype=F32)
    inputs = [("f32", x), ("f32", x), ("f32", z)]
    got = _run(programs.ternary(programs.multiply_add), inputs, ("f32", (N,)), tmp_path)
    np.testing.assert_array_equal(got, np.full(N, 2.0**-24, dtype=F32))
    got = _run(programs.ternary(programs.multiply_subtract), inputs, ("f32", (N,)), tmp_path)
    np.testing.assert_array_equal(got, (z.astype(np.float64) - x.astype(np.float64) ** 2).astype(F32))


MATRIX = GENERATOR.standard_normal((8, 16)).astype(F32)


@pytest.mark.parametrize(
    ("function", "dtype", "expected"),
    [
        (programs.row_sums, "f32", lambda m: m.sum(axis=1)),
        (programs.column_products, "f32", lambda m: m.prod(axis=0)),
        (programs.row_maxima, "f32", lambda m: m.max(axis=1)),
        (programs.row_argmin, "i32", lambda m: m.argmin(axis=1)),
        (programs.column_argmax, "i32", lambda m: m.argmax(axis=0)),
    ],
    ids=lambda value: value.__name__ if hasattr(value, "__name__") else None,
)
def test_reductions(function: Any, dtype: str, expected: Callable[[Any], Any], tmp_path: Path) -> None:
    want = expected(MATRIX)
    got = _run(programs.matrix(function, 8, 16), [("f32", MATRIX)], (dtype, want.shape), tmp_path)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (programs.running_sums, lambda m: m.cumsum(axis=1)),
        (programs.running_products_backwards, lambda m: m[::-1].cumprod(axis=0)[::-1]),
        (programs.halves_exchanged, lambda m: np.roll(m, 8, axis=1)),
        (programs.turned, lambda m: m.T.reshape(8, 16)),
        (programs.outer_sum, lambda m: m.sum(axis=1)[:, None] + m.sum(axis=0)[None, :]),
    ],
    ids=lambda value: value.__name__ if hasattr(value, "__name__") else None,
)
def test_shapes_and_scans(function: Any, expected: Callable[[Any], Any], tmp_path: Path) -> None:
    got = _run(programs.square(function, 8, 16), [("f32", MATRIX)], ("f32", (8, 16)), tmp_path)
    np.testing.assert_allclose(got, expected(MATRIX), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "acc", "exact"),
    [
        ("f16", "f32", True),
        ("bf16", "f32", True),
        ("f32", "f32", True),
        ("f64", "f64", False),
        ("i8", "i32", True),
    ],
)
def test_matrix_products(dtype: str, acc: str, exact: bool, tmp_path: Path) -> None:
    program = compile_kernel(programs.product, [(dtype, 2), (dtype, 2), (acc, 2), 16, 32, 8], tmp_path)
    bench = Bench()
    a = bench.array("a", dtype, GENERATOR.integers(-9, 9, (16, 32)))
    b = bench.array("b", dtype, GENERATOR.integers(-9, 9, (32, 8)))
    c = bench.array("c", acc, GENERATOR.integers(-9, 9, (16, 8)))
    whole = {name: bench.read(name).astype(np.float64) for name in "abc"}
    bench.launch(program, (1,), a, b, c)
    want = whole["a"] @ whole["b"] + whole["c"]
    np.testing.assert_array_equal(bench.read("c").astype(np.float64), want)


def _run(
    kernel: Any, inputs: list[tuple[str, Any]], output: tuple[str, tuple[int, ...]], folder: Path
) -> Any:
    dtype, shape = output
    signature = [*((kind, np.ndim(content)) for kind, content in inputs), (dtype, len(shape))]
    program = compile_kernel(kernel, signature, folder)
    bench = Bench()
    regions = [bench.array(f"x{i}", kind, content) for i, (kind, content) in enumerate(inputs)]
    bench.launch(program, (1,), *regions, bench.array("y", dtype, shape))
    return bench.read("y")


def _wrap(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def _truncated(values: Any, dtype: Any) -> Any:
    limits = np.iinfo(dtype)
    whole = np.trunc(np.nan_to_num(values.astype(np.float64), nan=0.0))
    return np.clip(whole, limits.min, limits.max).astype(dtype)


def _tf32(values: Any) -> Any:
    """Ten bits of mantissa, to nearest."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    return np.ldexp(np.rint(mantissa * 2**11) / 2**11, exponent).astype(F32)


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_matrix_products_of_bytes_read_the_sign(dtype: str, tmp_path: Path) -> None:
    program = compile_kernel(programs.product, [(dtype, 2), (dtype, 2), ("i32", 2), 16, 32, 8], tmp_path)
    bench = Bench()
    kind = np.int8 if dtype == "i8" else np.uint8
    limits = np.iinfo(kind)
    a, b = (
        GENERATOR.integers(limits.min, limits.max, shape, endpoint=True).astype(kind)
        for shape in ((16, 32), (32, 8))
    )
    regions = [bench.array(name, dtype, tile.view(np.int8)) for name, tile in (("a", a), ("b", b))]
    bench.launch(program, (1,), *regions, bench.array("c", "i32", np.ones((16, 8))))
    np.testing.assert_array_equal(bench.read("c"), a.astype(np.int32) @ b.astype(np.int32) + 1)


def test_scaled_matrix_products(tmp_path: Path) -> None:
    kinds = ["f8e4m3fn", "f8e8m0fnu", "f8e4m3fn", "f8e8m0fnu", "f32"]
    program = compile_kernel(programs.scaled_product, [(kind, 2) for kind in kinds], tmp_path)
    bench = Bench()
    a, b = GENERATOR.integers(-8, 8, (16, 64)), GENERATOR.integers(-8, 8, (64, 16))
    a_scale, b_scale = 2.0 ** GENERATOR.integers(-3, 3, (16, 2)), 2.0 ** GENERATOR.integers(-3, 3, (2, 16))
    contents = [a, a_scale, b, b_scale]
    arrays = [bench.array(f"x{i}", k, c) for i, (k, c) in enumerate(zip(kinds, contents, strict=False))]
    bench.launch(program, (1,), *arrays, bench.array("c", "f32", (16, 16)))
    want = (a * np.repeat(a_scale, 32, axis=1)) @ (b * np.repeat(b_scale, 32, axis=0))
    np.testing.assert_array_equal(bench.read("c"), want)


@pytest.mark.parametrize("at", [0, 1])
def test_a_tile_is_inserted(at: int, tmp_path: Path) -> None:
    program = compile_kernel(programs.inserted, [("f32", 2), ("f32", 2), "i32"], tmp_path)
    bench = Bench()
    x = np.arange(8).reshape(2, 4) + 1
    bench.launch(program, (1,), bench.array("x", "f32", x), bench.array("y", "f32", (4, 8)), at)
    want = np.zeros((4, 8))
    want[2 * at : 2 * at + 2, 4:] = x
    np.testing.assert_array_equal(bench.read("y"), want)


def test_bytes_are_packed_and_unpacked(tmp_path: Path) -> None:
    got = _run(programs.packed, [("f32", FLOATS)], ("f32", (N,)), tmp_path)
    np.testing.assert_array_equal(got.view(np.int32), FLOATS.view(np.int32))
