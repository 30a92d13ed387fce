"""Rounding against exact fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilebuild.interpreter import rounding
from tilebuild.interpreter.elements import numpy_type
from tilebuild.tileir.tree import Scalar

F32 = Scalar("f32")
MODES = ("nearest_even", "zero", "negative_inf", "positive_inf")
SINGLES = st.floats(width=32, allow_nan=False, allow_infinity=False)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


def _number(value: float | Fraction) -> Any:
    """A scalar as operations see it."""
    return np.array(float(value))


def _expected(exact: Fraction, element: str, mode: str) -> Any:
    """The neighbours of a fraction in a format, and the one that the mode picks."""
    dtype = numpy_type(Scalar(element))
    guess = rounding.nearest_even(_number(exact), Scalar(element)).astype(dtype)
    candidates = [np.nextafter(guess, dtype.type(-np.inf)), guess, np.nextafter(guess, dtype.type(np.inf))]
    finite = [c for c in candidates if np.isfinite(c)]
    below = max((c for c in finite if Fraction(float(c)) <= exact), default=None, key=float)
    above = min((c for c in finite if Fraction(float(c)) >= exact), default=None, key=float)
    if below is None or above is None:
        return None  # beyond the largest number
    if mode == "negative_inf" or (mode == "zero" and exact > 0):
        return below
    if mode == "positive_inf" or mode == "zero":
        return above
    low, high = exact - Fraction(float(below)), Fraction(float(above)) - exact
    if low != high:
        return below if low < high else above
    return below if int(np.array(below).view(f"u{dtype.itemsize}")) % 2 == 0 else above


def _same(got: Any, want: Any) -> bool:
    return want is None or float(got) == float(want)


@pytest.mark.parametrize("mode", MODES)
@given(SINGLES, SINGLES)
def test_sums_of_singles(mode: str, a: float, b: float) -> None:
    with np.errstate(all="ignore"):
        got = rounding.round_sum(*rounding.two_sum(_number(a), _number(b)), F32, mode)
        assert _same(got, _expected(Fraction(a) + Fraction(b), "f32", mode))


@pytest.mark.parametrize("mode", MODES)
@given(SINGLES, SINGLES)
def test_quotients_of_singles(mode: str, a: float, b: float) -> None:
    if b == 0:
        return
    with np.errstate(all="ignore"):
        got = rounding.round_sum(*rounding.quotient(_number(a), _number(b)), F32, mode)
        assert _same(got, _expected(Fraction(a) / Fraction(b), "f32", mode))


@given(SINGLES, SINGLES, SINGLES)
def test_fused_multiply_add_of_singles(a: float, b: float, c: float) -> None:
    with np.errstate(all="ignore"):
        pair = rounding.fused_multiply_add(_number(a), _number(b), _number(c), narrow=True)
        got = rounding.round_sum(*pair, F32, "nearest_even")
        assert _same(got, _expected(Fraction(a) * Fraction(b) + Fraction(c), "f32", "nearest_even"))


MODERATE = st.floats(min_value=-1e100, max_value=1e100).map(lambda v: v if abs(v) > 1e-100 else 1.0)


@given(MODERATE, MODERATE, MODERATE)
def test_fused_multiply_add_of_doubles(a: float, b: float, c: float) -> None:
    pair = rounding.fused_multiply_add(_number(a), _number(b), _number(c), narrow=False)
    got = rounding.round_sum(*pair, Scalar("f64"), "nearest_even")
    assert float(got) == float(Fraction(a) * Fraction(b) + Fraction(c))


@pytest.mark.parametrize("element", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("mode", MODES)
@given(st.floats(min_value=-60000, max_value=60000))
def test_narrowing(element: str, mode: str, value: float) -> None:
    got = rounding.round_float64(_number(value), Scalar(element), mode)
    assert _same(got, _expected(Fraction(value), element, mode))


@pytest.mark.parametrize(
    ("value", "want"), [(17.0, 16.0), (17 + 2**-40, 18.0), (19.0, 20.0), (19 - 2**-40, 18.0)]
)
def test_narrow_formats_round_once(value: float, want: float) -> None:
    """Between 16 and 32, f8E4M3FN holds the even numbers; a float32 on the way would hide on which side of a
    tie the value lies."""
    assert float(rounding.round_float64(_number(value), Scalar("f8E4M3FN"))) == want


def test_overflow_goes_to_infinity_or_to_the_largest_number() -> None:
    value = _number(1e39)
    largest = float(np.finfo(np.float32).max)
    with np.errstate(over="ignore"):
        assert float(rounding.round_float64(value, F32)) == np.inf
        assert float(rounding.round_float64(value, F32, "zero")) == largest
        assert float(rounding.round_float64(value, F32, "negative_inf")) == largest
        assert float(rounding.round_float64(-value, F32, "negative_inf")) == -np.inf


def test_tf32_keeps_ten_bits() -> None:
    got = rounding.round_float64(np.array([1 + 2**-10, 1 + 2**-11, 1 + 3 * 2**-11, np.inf]), Scalar("tf32"))
    np.testing.assert_array_equal(got, np.array([1 + 2**-10, 1, 1 + 2**-9, np.inf], dtype=np.float32))


def test_ties_away_from_zero() -> None:
    value = np.array([1 + 2**-24, -(1 + 2**-24), 1 + 2**-25])
    got = rounding.round_float64(value, F32, "nearest_away")
    np.testing.assert_array_equal(got, np.array([1 + 2**-23, -(1 + 2**-23), 1], dtype=np.float32))
