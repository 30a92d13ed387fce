"""Elementwise operations on floats. Knows neither memory nor control flow.

What Tile IR defines exactly (sums, products, quotients, roots, fused multiply-add) is rounded correctly
in every mode. Transcendental functions are evaluated in float64 and rounded once, so that results depend
neither on the width of this machine's vector unit nor on the layout of a tile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilebuild.interpreter import elements, rounding
from tilebuild.interpreter.elements import Array
from tilebuild.interpreter.frame import Frame, Handler, Signal
from tilebuild.tileir.tree import Element, Operation

_NEAREST = frozenset({"nearest_even", "approx", "full"})


def _arithmetic(fast: Callable[..., Array] | None, exact: Callable[..., rounding.Exact]) -> Handler:
    """An operation with a rounding mode: NumPy's own where it rounds to nearest even, else an exact pair,
    rounded."""

    def handler(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
        element = frame.element(operation.results[0])
        mode = str(operation.attributes.get("rounding", "nearest_even"))
        ftz = bool(operation.attributes.get("flush_to_zero", False))
        tiles = [rounding.flush(tile) if ftz else tile for tile in operands]
        if fast is not None and mode in _NEAREST and str(element) != "tf32":
            result = fast(*tiles)
        else:
            pair = exact(*(np.asarray(tile).astype(np.float64) for tile in tiles))
            result = rounding.round_sum(*pair, element, mode)
        return (rounding.flush(result) if ftz else result,)

    return handler


def _subtract(a: Array, b: Array) -> rounding.Exact:
    return rounding.two_sum(a, -b)


def _fma(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any] | Signal:
    narrow = str(frame.element(operation.results[0])) != "f64"

    def exact(a: Array, b: Array, c: Array) -> rounding.Exact:
        return rounding.fused_multiply_add(a, b, c, narrow)

    return _arithmetic(None, exact)(frame, operation, operands)


def _function(evaluate: Callable[..., Array]) -> Handler:
    """An operation without exact definition: evaluated in float64, rounded to nearest even."""

    def handler(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
        element = frame.element(operation.results[0])
        ftz = bool(operation.attributes.get("flush_to_zero", False))
        tiles = [rounding.flush(tile) if ftz else tile for tile in operands]
        result = rounding.nearest_even(evaluate(*(np.asarray(t).astype(np.float64) for t in tiles)), element)
        return (rounding.flush(result) if ftz else result,)

    return handler


def _bits(evaluate: Callable[[Array], Array]) -> Handler:
    """An operation on one tile that needs no rounding."""

    def handler(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
        return (evaluate(operands[0]),)

    return handler


def _extremum(larger: bool) -> Handler:
    def handler(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
        a, b = operands
        if operation.attributes.get("flush_to_zero", False):
            a, b = rounding.flush(a), rounding.flush(b)
        if operation.attributes.get("propagate_nan", False):
            result = np.maximum(a, b) if larger else np.minimum(a, b)
        else:
            result = np.fmax(a, b) if larger else np.fmin(a, b)
        # Zeros compare equal, but minus zero is the smaller one.
        zeros = (a == 0) & (b == 0)
        if np.any(zeros):
            signed = a + b if larger else -((-a) + (-b))
            result = np.where(zeros, signed, result).astype(result.dtype)
        return (result,)

    return handler


_COMPARE: Mapping[str, Callable[[Array, Array], Array]] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less_than": np.less,
    "less_than_or_equal": np.less_equal,
    "greater_than": np.greater,
    "greater_than_or_equal": np.greater_equal,
}


def _compare(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    a, b = operands
    holds = _COMPARE[str(operation.attributes["predicate"])](a, b)
    unordered = np.isnan(a) | np.isnan(b)
    if operation.attributes["ordering"] == "unordered":
        return (holds | unordered,)
    return (holds & ~unordered,)


def _integer_power(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    base, exponent = operands
    element: Element = frame.element(operation.results[0])
    power = np.power(np.asarray(base).astype(np.float64), np.asarray(exponent).astype(np.float64))
    return (rounding.nearest_even(power, element),)


def _ftof(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    element = frame.element(operation.results[0])
    value = np.asarray(operands[0]).astype(np.float64)
    return (rounding.round_float64(value, element, str(operation.attributes["rounding"])),)


def _ftoi(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    """Truncates; numbers out of range become the nearest limit and NaN becomes zero, as the hardware does
    it."""
    dtype = elements.numpy_type(frame.element(operation.results[0]))
    value = np.trunc(np.asarray(operands[0]).astype(np.float64))
    if dtype == np.bool_:
        return (value != 0,)
    signed = operation.attributes["signedness"] == "signed"
    whole = np.dtype(np.int64 if signed else np.uint64)
    limits = np.iinfo(dtype if signed else f"u{dtype.itemsize}")
    # The upper limit of 64 bits is no float64; the next lower one is, and nothing lies between.
    highest = np.nextafter(float(limits.max), 0) if dtype.itemsize == 8 else float(limits.max)
    clipped = np.clip(
        np.nan_to_num(value, nan=0.0, posinf=np.inf, neginf=-np.inf), float(limits.min), highest
    )
    result = np.where(value > highest, limits.max, clipped.astype(whole)).astype(whole)
    return (result.astype(f"u{dtype.itemsize}").view(dtype),)


def _itof(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    value = np.asarray(operands[0])
    if operation.attributes["signedness"] == "unsigned":
        value = elements.unsigned(value)
    high = value.astype(np.float64)
    low = np.zeros_like(high)
    if value.dtype.itemsize == 8:  # 64 bits do not fit into a float64: keep what was rounded away
        wide = value.astype(object)
        low = np.asarray(wide - np.frompyfunc(int, 1, 1)(high)).astype(np.float64)
    mode = str(operation.attributes["rounding"])
    return (rounding.round_sum(high, low, frame.element(operation.results[0]), mode),)


FLOATS: Mapping[str, Handler] = {
    "addf": _arithmetic(np.add, rounding.two_sum),
    "subf": _arithmetic(np.subtract, _subtract),
    "mulf": _arithmetic(np.multiply, rounding.two_product),
    "divf": _arithmetic(np.divide, rounding.quotient),
    "sqrt": _arithmetic(np.sqrt, rounding.square_root),
    "fma": _fma,
    "maxf": _extremum(larger=True),
    "minf": _extremum(larger=False),
    "cmpf": _compare,
    "absf": _bits(np.abs),
    "negf": _bits(np.negative),
    "ceil": _bits(np.ceil),
    "floor": _bits(np.floor),
    "atan2": _function(np.arctan2),
    "cos": _function(np.cos),
    "cosh": _function(np.cosh),
    "exp": _function(np.exp),
    "exp2": _function(np.exp2),
    "fpowf": _function(np.power),
    "fpowi": _integer_power,
    "log": _function(np.log),
    "log2": _function(np.log2),
    "remf": _function(np.fmod),
    "rsqrt": _function(lambda value: 1.0 / np.sqrt(value)),
    "sin": _function(np.sin),
    "sinh": _function(np.sinh),
    "tan": _function(np.tan),
    "tanh": _function(np.tanh),
    "ftof": _ftof,
    "ftoi": _ftoi,
    "itof": _itof,
}
