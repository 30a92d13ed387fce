"""Elementwise operations on integers, truth values and addresses. Knows neither memory nor control flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilebuild.interpreter import elements
from tilebuild.interpreter.elements import Array
from tilebuild.interpreter.frame import Frame, Handler, Refused
from tilebuild.tileir.tree import Operation, Pointer


def _wrapping(evaluate: Callable[..., Array]) -> Handler:
    """Arithmetic that keeps the low bits: the same for both readings of the sign."""

    def handler(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
        if operands[0].dtype == np.bool_:
            wide = evaluate(*(tile.astype(np.int8) for tile in operands))
            return ((wide & 1).astype(np.bool_),)
        return (evaluate(*operands),)

    return handler


def _logic(evaluate: Callable[[Array, Array], Array]) -> Handler:
    def handler(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
        return (evaluate(*operands),)

    return handler


def _signed(evaluate: Callable[[Array, Array], Array]) -> Handler:
    """An operation whose result depends on how the operands' sign is read."""

    def handler(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
        dtype = operands[0].dtype
        a, b = (_read(tile, operation.attributes["signedness"]) for tile in operands)
        return (_as_stored(evaluate(a, b), dtype),)

    return handler


def _read(tile: Array, signedness: object) -> Array:
    if tile.dtype == np.bool_:  # one bit, read as signed, is 0 or -1
        return -tile.astype(np.int8) if signedness == "signed" else tile.astype(np.uint8)
    return elements.unsigned(tile) if signedness == "unsigned" else tile


def _as_stored(tile: Array, dtype: np.dtype[Any]) -> Array:
    if dtype == np.bool_:
        return (tile & 1).astype(np.bool_)
    return np.asarray(tile).astype(f"u{dtype.itemsize}").view(dtype)


def _divide(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    """Integer division; one by zero is undefined and gives zero here, like one of the smallest number by
    -1."""
    dtype = operands[0].dtype
    a, b = (_read(tile, operation.attributes["signedness"]) for tile in operands)
    divisor = np.where(b == 0, np.array(1, dtype=b.dtype), b)
    floor = np.floor_divide(a, divisor)
    inexact = floor * divisor != a
    match operation.attributes["rounding"]:
        case "negative_inf":
            quotient = floor
        case "positive_inf":
            quotient = floor + inexact.astype(floor.dtype)
        case "zero":
            negative = (a < 0) != (divisor < 0)
            quotient = floor + (inexact & negative).astype(floor.dtype)
        case other:
            raise Refused(f"divi has no rounding mode {other!r}")
    return (_as_stored(np.where(b == 0, np.array(0, dtype=floor.dtype), quotient), dtype),)


def _remainder(a: Array, b: Array) -> Array:
    """The remainder of truncating division: it has the sign of the dividend."""
    divisor = np.where(b == 0, np.array(1, dtype=b.dtype), b)
    return np.where(b == 0, np.array(0, dtype=a.dtype), np.fmod(a, divisor))


def _shift_left(a: Array, count: Array) -> Array:
    width = a.dtype.itemsize * 8
    steps = elements.unsigned(count)
    shifted = np.left_shift(elements.unsigned(a), np.where(steps < width, steps, 0).astype(steps.dtype))
    return np.where(steps < width, shifted, 0).astype(shifted.dtype).view(a.dtype)


def _shift_right(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    a, count = operands
    value, steps = _read(a, operation.attributes["signedness"]), elements.unsigned(count)
    width = a.dtype.itemsize * 8
    # All bits shifted out leave copies of the sign; one bit less and one more step give the same.
    most = np.minimum(steps, np.array(width - 1, dtype=steps.dtype)).astype(value.dtype)
    shifted = np.right_shift(value, most)
    if operation.attributes["signedness"] == "unsigned":
        shifted = np.where(steps < width, shifted, 0).astype(value.dtype)
    return (_as_stored(shifted, a.dtype),)


def _multiply_high(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    """The upper half of the product of two unsigned integers."""
    dtype = operands[0].dtype
    a, b = (elements.unsigned(tile).astype(object) for tile in operands)
    high = np.asarray((a * b) >> (dtype.itemsize * 8))
    return (elements.from_numbers(high, frame.element(operation.results[0])).reshape(operands[0].shape),)


_COMPARE: Mapping[str, Callable[[Array, Array], Array]] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less_than": np.less,
    "less_than_or_equal": np.less_equal,
    "greater_than": np.greater,
    "greater_than_or_equal": np.greater_equal,
}


def _compare(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    a, b = (_read(tile, operation.attributes["signedness"]) for tile in operands)
    return (_COMPARE[str(operation.attributes["predicate"])](a, b),)


def _select(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    condition, if_true, if_false = operands
    return (np.where(condition, if_true, if_false),)


def _extend(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    dtype = elements.numpy_type(frame.element(operation.results[0]))
    return (_as_stored(_read(operands[0], operation.attributes["signedness"]).astype(dtype), dtype),)


def _truncate(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    return (_as_stored(operands[0], elements.numpy_type(frame.element(operation.results[0]))),)


def _bitcast(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    tile = np.asarray(operands[0])
    dtype = elements.numpy_type(frame.element(operation.results[0]))
    if dtype.itemsize != tile.dtype.itemsize:
        source = frame.element(operation.operands[0])
        raise Refused(f"bitcast from {source} to {frame.element(operation.results[0])}")
    return (np.asarray(tile, order="C").view(dtype),)


def _same(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    """Pointers are 64-bit addresses, whatever they point to."""
    return (operands[0],)


def _offset(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    pointers, offsets = operands
    pointer = frame.element(operation.results[0])
    if not isinstance(pointer, Pointer):
        raise Refused(f"offset of {pointer}")
    return (pointers + np.asarray(offsets).astype(np.int64) * elements.item_bytes(pointer.pointee),)


INTEGERS: Mapping[str, Handler] = {
    "addi": _wrapping(np.add),
    "subi": _wrapping(np.subtract),
    "muli": _wrapping(np.multiply),
    "negi": _wrapping(np.negative),
    "absi": _wrapping(np.abs),
    "shli": _wrapping(_shift_left),
    "andi": _logic(np.bitwise_and),
    "ori": _logic(np.bitwise_or),
    "xori": _logic(np.bitwise_xor),
    "maxi": _signed(np.maximum),
    "mini": _signed(np.minimum),
    "remi": _signed(_remainder),
    "divi": _divide,
    "shri": _shift_right,
    "mulhii": _multiply_high,
    "cmpi": _compare,
    "select": _select,
    "exti": _extend,
    "trunci": _truncate,
    "bitcast": _bitcast,
    "ptr_to_int": _same,
    "int_to_ptr": _same,
    "ptr_to_ptr": _same,
    "offset": _offset,
}
