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
    return [_value(i, word, kind) for i, (word, kind) in enumerate(zip(words, kinds, strict=True))]


@dataclass(frozen=True)
class _Address:
    """A word that points to memory; only a pointer takes it."""

    value: int


_Word: TypeAlias = bool | int | float | _Address


def _words(argument: Argument, memory: Memory) -> Iterator[_Word]:
    match argument:
        case Region():
            yield _Address(argument.address)
            yield from (*argument.shape, *argument.strides)
        case ListArgument(regions):
            rows = np.array([[r.address, *r.shape, *r.strides] for r in regions], dtype=np.int64).reshape(-1)
            table = Region("table", memory.reserve(rows.nbytes), rows.shape, (1,), Scalar("i64"))
            memory.place(table, rows)
            yield _Address(table.address)
            yield len(regions)
        case ScalarArgument(value):
            yield value


def _scalar_type(entry: Entry, value: int) -> Element:
    kind = entry.types[value]
    if not isinstance(kind, TileType) or kind.shape:
        raise InterfaceError(f"the entry has a parameter of type {kind}")
    return kind.element


def _value(position: int, word: _Word, kind: Element) -> Array:
    if isinstance(kind, Pointer) != isinstance(word, _Address):
        what = "an address" if isinstance(word, _Address) else f"the number {word}"
        raise InterfaceError(f"parameter {position} of the entry is a {kind}, its argument {what}")
    if isinstance(word, _Address):
        return np.array(word.value, dtype=np.int64)
    if elements.is_float(kind):
        return np.array(word, dtype=np.float64).astype(elements.numpy_type(kind))
    if isinstance(word, float):
        raise InterfaceError(f"parameter {position} of the entry is a {kind}, its argument the float {word}")
    if str(kind) == "i32" and not -(1 << 31) <= word < 1 << 32:
        raise InterfaceError(f"the argument {word} of parameter {position} does not fit into 32 bits")
    return elements.from_numbers(word, kind)
