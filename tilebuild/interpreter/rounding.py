"""Correctly rounded float arithmetic in every rounding mode. Knows no operation and no tile.

Every result is computed as an unevaluated sum `high + low` of two float64 that is exact, or differs from
the exact value by less than half a unit in the last place of `low`. It is then rounded *to odd* into one
float64: a value that cannot be represented gets an odd last bit, so that a second rounding to a format of
at most 24 bits is the only one that counts (Boldo and Melquiond, 2008).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilebuild.interpreter.elements import Array, numpy_type
from tilebuild.tileir.tree import Element, Scalar

#: Modes that name no result of their own: the operation is approximate, and this is the best one.
_NEAREST = ("nearest_even", "approx", "full")
_SPLIT = 134217729.0  # 2**27 + 1
_TF32_UNUSED_BITS = 13

Exact = tuple[Array, Array]


def two_sum(a: Array, b: Array) -> Exact:
    high = a + b
    part = high - a
    return _finite(high, (a - (high - part)) + (b - part))


def two_product(a: Array, b: Array) -> Exact:
    """Exact unless a partial product over- or underflows."""
    high = a * b
    a1, a2 = _halves(a)
    b1, b2 = _halves(b)
    return _finite(high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2)


def quotient(a: Array, b: Array) -> Exact:
    """The quotient and a remainder of the right sign."""
    high = a / b
    product, error = two_product(high, b)
    return _finite(high, ((a - product) - error) / b)


def square_root(a: Array) -> Exact:
    high = np.sqrt(a)
    product, error = two_product(high, high)
    return _finite(high, ((a - product) - error) / (2 * high))


def fused_multiply_add(a: Array, b: Array, c: Array, narrow: bool) -> Exact:
    """`a * b + c`; the product of two `narrow` numbers, of at most 24 bits, is a float64."""
    if narrow:
        return two_sum(a * b, c)
    product, product_error = two_product(a, b)
    error_sum, error_rest = two_sum(c, product_error)
    high, middle = two_sum(product, error_sum)
    return high, to_odd(*two_sum(middle, error_rest))


def to_odd(high: Array, low: Array) -> Array:
    """`high + low`, rounded to odd; `high` must be the nearest float64 to the sum."""
    high, low = np.broadcast_arrays(np.asarray(high, dtype=np.float64), np.asarray(low, dtype=np.float64))
    inexact = (low != 0) & np.isfinite(high) & np.isfinite(low)
    even = (np.asarray(high, order="C").view(np.int64) & 1) == 0
    neighbour = np.nextafter(high, np.where(low > 0, np.inf, -np.inf))
    return np.where(inexact & even, neighbour, high)


def round_sum(high: Array, low: Array, element: Element, mode: str) -> Array:
    """`high + low` in the element's format."""
    if str(element) == "f64":
        return _directed(np.asarray(high + low), high, low, mode)
    return round_float64(to_odd(high, low), element, mode)


def round_float64(value: Array, element: Element, mode: str = "nearest_even") -> Array:
    """A float64, rounded once to the element's format."""
    value = np.asarray(value, dtype=np.float64)
    nearest = nearest_even(value, element)
    if mode in _NEAREST:
        return nearest
    if mode == "nearest_away":
        return _nearest_away(value, nearest, element)
    back = nearest.astype(np.float64)
    return _step(nearest, _direction(value, mode), value - back, element)


def nearest_even(value: Array, element: Element) -> Array:
    """A float64 in the element's format, to nearest, ties to even; one rounding, whatever NumPy does on
    the way."""
    name = str(element)
    if name == "f64":
        return value
    if name in ("f32", "f16"):
        return value.astype(numpy_type(element))
    single = value.astype(np.float32)  # an odd float32 stands in for the float64: narrower formats round once
    odd = _odd_float32(value, single)
    return tf32(odd) if name == "tf32" else odd.astype(numpy_type(element))


def tf32(single: Array) -> Array:
    """A float32 rounded to the ten bits of mantissa of tf32."""
    bits = np.asarray(single, order="C").view(np.uint32).astype(np.uint64)
    half = (np.uint64(1) << np.uint64(_TF32_UNUSED_BITS - 1)) - np.uint64(1)
    odd = (bits >> np.uint64(_TF32_UNUSED_BITS)) & np.uint64(1)
    kept = (bits + half + odd) >> np.uint64(_TF32_UNUSED_BITS) << np.uint64(_TF32_UNUSED_BITS)
    rounded = kept.astype(np.uint32).view(np.float32)
    return np.where(np.isfinite(single), rounded, single)


def flush(tile: Array) -> Array:
    """Subnormal numbers as zeros of their sign."""
    return np.where(np.abs(tile) < np.finfo(tile.dtype).tiny, np.copysign(tile.dtype.type(0), tile), tile)


def _odd_float32(value: Array, single: Array) -> Array:
    back = single.astype(np.float64)
    inexact = (back != value) & np.isfinite(back)
    # Truncate towards zero, then set the last bit.
    beyond = inexact & (np.abs(back) > np.abs(value))
    towards_zero = np.where(beyond, np.nextafter(single, np.float32(0)), single)
    bits = np.asarray(towards_zero, order="C").view(np.uint32) | inexact.astype(np.uint32)
    odd: Array = bits.view(np.float32)
    return odd.reshape(single.shape)


def _direction(value: Array, mode: str) -> Array:
    """Where a directed mode rounds to: -inf, +inf or zero."""
    if mode == "zero":
        return np.zeros_like(value)
    return np.full_like(value, np.inf if mode == "positive_inf" else -np.inf)


def _directed(nearest: Array, high: Array, low: Array, mode: str) -> Array:
    """float64: `nearest` moved by one where the rest lies on the other side of the mode's direction."""
    if mode in _NEAREST or mode == "nearest_away":
        return nearest
    rest = np.asarray(low - (nearest - high))
    return _step(nearest, _direction(nearest, mode), rest, Scalar("f64"))


def _step(nearest: Array, direction: Array, rest: Array, element: Element) -> Array:
    """`nearest` or its neighbour towards `direction`; `rest` is the exact value less `nearest`."""
    back = nearest.astype(np.float64)
    # Overflow to infinity leaves a rest of minus infinity: the largest number is the neighbour of infinity.
    wanted = np.where(direction == 0, -np.sign(back), np.sign(direction))
    moves = (np.sign(rest) == wanted) & (rest != 0) & ~np.isnan(back)
    target = np.where(direction == 0, 0.0, direction).astype(nearest.dtype)
    if str(element) == "tf32":
        return np.where(moves, _tf32_neighbour(nearest, wanted), nearest)
    return np.where(moves, np.nextafter(nearest, target), nearest).astype(nearest.dtype)


def _tf32_neighbour(tile: Array, upward: Array) -> Array:
    bits = np.asarray(tile, order="C").view(np.int32).astype(np.int64)
    away = np.where((tile >= 0) == (upward > 0), 1, -1) << _TF32_UNUSED_BITS
    return (bits + away).astype(np.int32).view(np.float32).reshape(tile.shape)


def _nearest_away(value: Array, nearest: Array, element: Element) -> Array:
    back = nearest.astype(np.float64)
    outward = np.where(value > 0, np.inf, -np.inf).astype(nearest.dtype)
    beyond: Any = np.nextafter(nearest, outward)
    tie = (np.abs(back) < np.abs(value)) & (value - back == beyond.astype(np.float64) - value)
    return np.where(tie, beyond, nearest).astype(nearest.dtype)


def _finite(high: Array, low: Array) -> Exact:
    """Infinities, NaNs and exact zeros have no rest."""
    return high, np.where(np.isfinite(high) & np.isfinite(low), low, 0.0)


def _halves(a: Array) -> Exact:
    scaled = a * _SPLIT
    high = scaled - (scaled - a)
    return high, a - high
