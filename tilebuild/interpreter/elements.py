"""Element types of Tile IR as NumPy arrays. Knows no operation.

A tile is an array of the NumPy type of its element: `i1` is bool, integers are signed (Tile IR integers
have no sign; operations that read them as unsigned view them so), pointers are 64-bit addresses, and
`tf32` is a float32 whose low thirteen bits of mantissa are zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tilebuild.tileir.tree import Element, Pointer

#: Any array of elements; which element type, the Tile IR type says.
Array: TypeAlias = NDArray[Any]

_TYPES: Mapping[str, Any] = {
    "i1": np.bool_,
    "i4": ml_dtypes.int4,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "tf32": np.float32,
    "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
}
_UNSIGNED: Mapping[Any, Any] = {
    np.dtype(np.int8): np.uint8,
    np.dtype(np.int16): np.uint16,
    np.dtype(np.int32): np.uint32,
    np.dtype(np.int64): np.uint64,
}
_TF32_UNUSED_BITS = 13
#: What unwritten memory and undetermined lanes hold: all ones is NaN in every float format; integers get a
#: pattern that is neither small nor all ones.
_INTEGER_POISON = 0xA5


class UnknownElement(Exception):
    """An element type that the interpreter does not have."""


def is_float(element: Element) -> bool:
    return not isinstance(element, Pointer) and element.name[0] in "fbt"


def numpy_type(element: Element) -> np.dtype[Any]:
    """The NumPy type that holds an element. Raises `UnknownElement`."""
    if isinstance(element, Pointer):
        return np.dtype(np.int64)
    if element.name not in _TYPES:
        raise UnknownElement(f"the interpreter has no element type {element.name}")
    dtype: np.dtype[Any] = np.dtype(_TYPES[element.name])
    return dtype


def item_bytes(element: Element) -> int:
    """The size of an element in memory."""
    if not isinstance(element, Pointer) and element.name in ("i4", "f4E2M1FN"):
        raise UnknownElement(f"{element.name} elements share bytes and cannot be addressed one by one")
    return numpy_type(element).itemsize


def from_bits(bits: object, element: Element) -> Array:
    """Floats from their bits: a number, or nested tuples of numbers."""
    dtype = numpy_type(element)
    words = np.array(bits, dtype=np.uint64)
    if str(element) == "tf32":
        words = words << np.uint64(_TF32_UNUSED_BITS)
    return words.astype(f"u{dtype.itemsize}").view(dtype)


def from_numbers(numbers: object, element: Element) -> Array:
    """Integers, truth values or addresses from Python numbers, wrapped to the width of the element."""
    dtype = numpy_type(element)
    if dtype == np.bool_:
        return np.array(numbers, dtype=np.bool_)
    words = np.array(numbers, dtype=object) & ((1 << (8 * dtype.itemsize)) - 1)
    return np.array(words, dtype=np.uint64).astype(f"u{dtype.itemsize}").view(dtype)


def unsigned(tile: Array) -> Array:
    """The same bits as unsigned integers; truth values stay."""
    return tile if tile.dtype == np.bool_ else tile.view(_UNSIGNED[tile.dtype])


def poison(shape: tuple[int, ...], element: Element, large: bool = False) -> Array:
    """What a program must not look at: NaN or, for programs that ignore NaN, the largest number."""
    dtype = numpy_type(element)
    if not is_float(element):
        return np.full((*shape, dtype.itemsize), _INTEGER_POISON, dtype=np.uint8).view(dtype).reshape(shape)
    if large:
        return np.full(shape, ml_dtypes.finfo(dtype).max, dtype=dtype)
    return np.full((*shape, dtype.itemsize), 0xFF, dtype=np.uint8).view(dtype).reshape(shape)


def poison_byte(element: Element) -> int:
    return 0xFF if is_float(element) else _INTEGER_POISON


def canonical_bits(tile: Array) -> Array:
    """The bits of each element, all NaNs equal: which NaN an operation gives is not specified."""
    if tile.dtype.kind in "biu":
        return tile
    quiet = np.where(np.isnan(tile), np.array(np.nan, dtype=tile.dtype), tile)
    return quiet.view(f"u{tile.dtype.itemsize}")
