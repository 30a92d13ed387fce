"""Arguments of a launch: the slots of a kernel from a case, and their bytes. Knows no device.

The calling convention of cuTile Python: an array is a pointer, its shape, its strides (in elements, as 32-
or 64-bit integers); a scalar is one slot; a constant none; a list of arrays is a pointer to a table and a
length, one row of the table per array: address, shape, strides as 64-bit words. The Rust entry has the same
list; an entry that takes outputs by `&mut` has unused 32-bit slots behind it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilebuild.gpu.elements import encode, is_float
from tilebuild.gpu.plan import Array, Slot, read_array

_WORDS = {
    "i8": "b",
    "i16": "h",
    "i32": "i",
    "i64": "q",
    "u8": "B",
    "u16": "H",
    "u32": "I",
    "u64": "Q",
    "f64": "d",
}
_UNUSED: Slot = ("i32", 0)
_UNUSED_BYTES = 4
_INT32 = range(-(1 << 31), 1 << 31)


class ArgumentError(Exception):
    """A case that does not fit the parameters of the kernel."""


def slots(case: Mapping[str, Any], step: Mapping[str, Any], dtypes: Sequence[str | None] = ()) -> list[Slot]:
    """The slots of a step of a case, as `Case.to_json()` writes both, by the convention of cuTile Python.

    `dtypes` holds the short element type of each scalar parameter where the kernel states one.
    """
    arrays = {name: read_array(data) for name, data in case["arrays"].items()}
    found: list[Slot] = []
    for position, argument in enumerate(step["args"]):
        stated = dtypes[position] if position < len(dtypes) else None
        found += _slots_of(argument, arrays, stated)
    return found


def rust_slots(python: Sequence[Slot], sizes: Sequence[int]) -> list[Slot]:
    """The same slots, and as many unused ones as the entry has behind them. Raises `ArgumentError`."""
    extra = sizes[len(python) :]
    if list(sizes[: len(python)]) != [slot_bytes(slot) for slot in python] or set(extra) - {_UNUSED_BYTES}:
        ours = [slot_bytes(slot) for slot in python]
        raise ArgumentError(f"the entry takes parameters of {list(sizes)} bytes, the case gives {ours}")
    return [*python, *[_UNUSED] * len(extra)]


def keywords(case: Mapping[str, Any], step: Mapping[str, Any], parameters: Sequence[str]) -> dict[str, Any]:
    """What a reference may be given for a step: names of arrays as `{"array": name}`, lists of them,
    numbers.
    """
    if len(parameters) != len(step["args"]):
        raise ArgumentError(f"{step['kernel']!r} has {len(parameters)} parameters, not {len(step['args'])}")
    return {name: _keyword(argument) for name, argument in zip(parameters, step["args"], strict=True)}


def slot_bytes(slot: Slot) -> int:
    """How many bytes the parameter of a slot has."""
    kind, _ = slot
    return 8 if kind in ("pointer", "table") else len(pack(slot, {}, {}))


def pack(slot: Slot, addresses: Mapping[str, int], tables: Mapping[tuple[str, ...], int]) -> bytes:
    """The bytes of an argument, given where arrays and tables lie."""
    kind, value = slot
    if kind == "pointer":
        return struct.pack("<Q", addresses[value])
    if kind == "table":
        return struct.pack("<Q", tables[tuple(value)])
    if kind in _WORDS:
        return struct.pack("<" + _WORDS[kind], value)
    number = np.array([value], dtype=np.float64 if is_float(kind) else np.int64)
    return bytes(encode(np, number, kind).tobytes())


def table(arrays: Sequence[tuple[int, Array]]) -> list[int]:
    """The words of the table of a list of arrays, given with their addresses."""
    return [word for address, array in arrays for word in (address, *array.shape, *array.strides)]


def _slots_of(argument: Any, arrays: Mapping[str, Array], stated: str | None) -> Iterator[Slot]:
    match argument:
        case str():
            array = arrays[argument]
            yield ("pointer", argument)
            for number in (*array.shape, *array.strides):
                yield (array.index_dtype, number)
        case {"kind": "list", "arrays": names}:
            yield ("table", list(names))
            yield ("i32", len(names))
        case {"kind": "const"}:
            return
        case {"kind": "scalar", "dtype": dtype, "value": value}:
            yield (dtype, value)
        case bool():
            yield (stated or "bool", argument)
        case int():
            yield (stated or ("i32" if argument in _INT32 else "i64"), argument)
        case float():
            yield (stated or "f32", argument)
        case _:
            raise ArgumentError(f"not an argument: {argument!r}")


def _keyword(argument: Any) -> Any:
    match argument:
        case str():
            return {"array": argument}
        case {"kind": "list", "arrays": names}:
            return {"arrays": list(names)}
        case {"kind": "const" | "scalar", "value": value}:
            return value
    return argument
