"""Constants, the shapes of tiles, matrices, reductions and scans. Knows no memory.

A reduction folds halves of the axis onto each other, and a scan doubles its reach: fixed orders, the same
for every program, in which the combining region sees whole tiles at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tilebuild.interpreter import elements, rounding
from tilebuild.interpreter.elements import Array
from tilebuild.interpreter.frame import Frame, Handler, Refused
from tilebuild.tileir.tree import AttributeValue, Operation, TileType

#: A multiply-add is cheaper than an element operation: it runs in a compiled loop.
_MULTIPLY_ADDS_PER_ELEMENT_OPERATION = 8


def content(attributes: Mapping[str, AttributeValue], kind: TileType) -> Array:
    """The tile that the attributes of a constant describe: one number for all elements, or each of them."""
    if elements.is_float(kind.element):
        values = elements.from_bits(attributes["bits"], kind.element)
    else:
        values = elements.from_numbers(attributes["value"], kind.element)
    return np.broadcast_to(values, kind.shape)


def _constant(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    return (content(operation.attributes, frame.tile(operation.results[0])),)


def _iota(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    kind = frame.tile(operation.results[0])
    return (elements.from_numbers(np.arange(kind.shape[0]), kind.element),)


def _reshape(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    return (np.reshape(operands[0], frame.tile(operation.results[0]).shape),)


def _broadcast(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    return (np.broadcast_to(operands[0], frame.tile(operation.results[0]).shape),)


def _permute(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    axes = operation.attributes["permutation"]
    return (np.transpose(operands[0], [int(str(axis)) for axis in _tuple(axes)]),)


def _cat(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    return (np.concatenate(operands, axis=int(str(operation.attributes["dim"]))),)


def _part(index: Sequence[Any], shape: tuple[int, ...], whole: tuple[int, ...]) -> tuple[slice, ...]:
    """The slice that an index, in units of `shape`, picks; it wraps where the index is out of range."""
    starts = [int(i) % (n // size) * size for i, size, n in zip(index, shape, whole, strict=True)]
    return tuple(slice(start, start + size) for start, size in zip(starts, shape, strict=True))


def _extract(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    source = operands[0]
    shape = frame.tile(operation.results[0]).shape
    return (source[_part(frame.operands(operation, "indices"), shape, source.shape)],)


def _insert(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    source, destination = frame.operand(operation, "source"), frame.operand(operation, "destination")
    result = np.array(destination)
    result[_part(frame.operands(operation, "indices"), source.shape, destination.shape)] = source
    return (result,)


def _pack(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    """A 1-D tile as bytes; two 4-bit elements share one, the first in its low half."""
    source = np.ascontiguousarray(operands[0])
    if _half_bytes(source):
        codes = source.view(np.uint8) & 0xF
        return ((codes[0::2] | (codes[1::2] << 4)).view(np.int8),)
    return (source.view(np.int8),)


def _unpack(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    dtype = elements.numpy_type(frame.element(operation.results[0]))
    source = np.ascontiguousarray(operands[0])
    if not _half_bytes(np.empty(0, dtype=dtype)):
        return (source.view(dtype),)
    codes = source.view(np.uint8)
    return (np.stack([codes & 0xF, codes >> 4], axis=1).reshape(-1).view(dtype),)


def _half_bytes(tile: Array) -> bool:
    return tile.dtype in (np.dtype(ml_dtypes.float4_e2m1fn), np.dtype(ml_dtypes.int4))


def _product(frame: Frame, a: Array, b: Array) -> Array:
    """A matrix product of numbers of at most 24 bits: products are exact, and sums are rounded once, to
    float64."""
    frame.spend(a.shape[-1] * a[..., 0].size * b.shape[-1] // _MULTIPLY_ADDS_PER_ELEMENT_OPERATION)
    return np.asarray(np.matmul(a.astype(np.float64), b.astype(np.float64)))


def _mmaf(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    a, b, acc = operands[:3]
    if a.dtype == np.float64:
        return (_ordered_product(frame, a, b, acc),)
    total = _product(frame, a, b) + acc.astype(np.float64)
    return (rounding.nearest_even(total, frame.element(operation.results[0])),)


def _ordered_product(frame: Frame, a: Array, b: Array, acc: Array) -> Array:
    """float64 has no wider format: the order of the sum matters, so it is fixed."""
    frame.spend(a.shape[-1] * acc.size)
    total = np.array(acc)
    for k in range(a.shape[-1]):
        total = total + a[..., :, k, None] * b[..., k, None, :]
    return total


def _mmaf_scaled(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    a, b, acc, a_scale, b_scale = operands
    total = _product(frame, _scaled(a, a_scale, -1), _scaled(b, b_scale, -2)) + acc.astype(np.float64)
    return (rounding.nearest_even(total, frame.element(operation.results[0])),)


def _scaled(tile: Array, scale: Array, axis: int) -> Array:
    """The tile times its scales, each of which holds for a run of elements along the axis of the sum."""
    repeats = tile.shape[axis] // scale.shape[axis]
    return tile.astype(np.float64) * np.repeat(scale.astype(np.float64), repeats, axis=axis)


def _mmai(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    a, b, acc = operands
    if operation.attributes["signedness_lhs"] == "unsigned":
        a = elements.unsigned(a)
    if operation.attributes["signedness_rhs"] == "unsigned":
        b = elements.unsigned(b)
    total = _product(frame, a, b).astype(np.int64) + acc.astype(np.int64)
    return (total.astype(np.uint32).view(np.int32),)


def _reduce(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    axis = int(str(operation.attributes["dim"]))
    tiles = list(operands)
    while tiles[0].shape[axis] > 1:
        half = tiles[0].shape[axis] // 2
        first = [_along(tile, axis, slice(0, half)) for tile in tiles]
        second = [_along(tile, axis, slice(half, None)) for tile in tiles]
        tiles = _combine(frame, operation, first, second)
    return tuple(np.squeeze(tile, axis=axis) for tile in tiles)


def _scan(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    axis = int(str(operation.attributes["dim"]))
    reverse = bool(operation.attributes.get("reverse", False))
    tiles = [np.flip(tile, axis) if reverse else tile for tile in operands]
    reach, length = 1, tiles[0].shape[axis]
    while reach < length:
        before = [_along(tile, axis, slice(0, length - reach)) for tile in tiles]
        here = [_along(tile, axis, slice(reach, None)) for tile in tiles]
        combined = _combine(frame, operation, before, here)
        tiles = [
            np.concatenate([_along(tile, axis, slice(0, reach)), new], axis=axis)
            for tile, new in zip(tiles, combined, strict=True)
        ]
        reach *= 2
    return tuple(np.flip(tile, axis) if reverse else tile for tile in tiles)


def _combine(frame: Frame, operation: Operation, first: list[Array], second: list[Array]) -> list[Array]:
    """Runs the region on whole tiles: its arguments are (accumulated, next) for each operand in turn."""
    pairs = [tile for pair in zip(first, second, strict=True) for tile in pair]
    signal = frame.run(operation.regions[0], pairs)
    if signal.kind != "yield":
        raise Refused(f"a {operation.name} whose region ends with {signal.kind}")
    return [np.broadcast_to(tile, first[0].shape) for tile in signal.values]


def _along(tile: Array, axis: int, part: slice) -> Array:
    return tile[(slice(None),) * axis + (part,)]


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value)


SHAPES: Mapping[str, Handler] = {
    "constant": _constant,
    "iota": _iota,
    "reshape": _reshape,
    "broadcast": _broadcast,
    "permute": _permute,
    "cat": _cat,
    "extract": _extract,
    "insert": _insert,
    "pack": _pack,
    "unpack": _unpack,
    "mmaf": _mmaf,
    "mmaf_scaled": _mmaf_scaled,
    "mmai": _mmai,
    "reduce": _reduce,
    "scan": _scan,
}
