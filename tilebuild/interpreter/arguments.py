"""The parameters of a kernel entry from the arguments of a launch: cuTile's calling convention. Knows no
case.

An array is its address, its lengths and its strides; a list of arrays is the address of a table with one
row of 64-bit words for each array, and how many rows there are; a scalar is itself; a constant has no
parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tilebuild.interpreter import elements
from tilebuild.interpreter.elements import Array
from tilebuild.interpreter.memory import Memory, Region
from tilebuild.tileir.tree import Element, Entry, Pointer, Scalar, TileType

#: What parameters get that only one side has: any value is right for a value that is not used. This one keeps
#: the promises that such a parameter may carry: it is positive, and divisible by every divisor in use.
_UNUSED = 4096


class InterfaceError(Exception):
    """The parameters of the entry do not fit the arguments."""


@dataclass(frozen=True)
class ScalarArgument:
    value: bool | int | float


@dataclass(frozen=True)
class ListArgument:
    regions: tuple[Region, ...]


Argument: TypeAlias = Region | ListArgument | ScalarArgument


def table_bytes(argument: ListArgument) -> int:
    """How much memory the table of a list needs."""
    return 8 * sum(1 + 2 * len(region.shape) for region in argument.regions)


def parameters(entry: Entry, arguments: Sequence[Argument], memory: Memory) -> list[Array]:
    """A value for each parameter of the entry. Raises `InterfaceError`.

    Integers behind the last argument are allowed: cuTile Rust appends the shape of a block's part of an
    output.
    """
    words = [word for argument in arguments for word in _words(argument, memory)]
    kinds = [_scalar_type(entry, value) for value in entry.parameters]
    if len(words) > len(kinds):
        raise InterfaceError(f"the entry has {len(kinds)} parameters, the arguments need {len(words)}")
    for kind in kinds[len(words) :]:
        if isinstance(kind, Pointer) or kind.name not in ("i32", "i64"):
            raise InterfaceError(f"the entry has a parameter of type {kind} behind the last argument")
    words += [_UNUSED] * (len(kinds) - len(words))
    return [_value(word, kind) for word, kind in zip(words, kinds, strict=True)]


def _words(argument: Argument, memory: Memory) -> Iterator[bool | int | float]:
    match argument:
        case Region():
            yield from _row(argument)
        case ListArgument(regions):
            rows = np.array([word for region in regions for word in _row(region)], dtype=np.int64)
            table = Region("table", memory.reserve(rows.nbytes), rows.shape, (1,), Scalar("i64"))
            memory.place(table, rows)
            yield table.address
            yield len(regions)
        case ScalarArgument(value):
            yield value


def _row(region: Region) -> Iterator[int]:
    yield region.address
    yield from region.shape
    yield from region.strides


def _scalar_type(entry: Entry, value: int) -> Element:
    kind = entry.types[value]
    if not isinstance(kind, TileType) or kind.shape:
        raise InterfaceError(f"the entry has a parameter of type {kind}")
    return kind.element


def _value(word: bool | int | float, kind: Element) -> Array:
    if elements.is_float(kind):
        return np.array(word, dtype=np.float64).astype(elements.numpy_type(kind))
    if isinstance(word, float):
        raise InterfaceError(f"the argument {word} is a float, its parameter a {kind}")
    if not isinstance(kind, Pointer) and kind.name == "i32" and not -(1 << 31) <= word < 1 << 32:
        raise InterfaceError(f"the argument {word} does not fit into 32 bits")
    return elements.from_numbers(word, kind)
