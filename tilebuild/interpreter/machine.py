"""Runs a kernel entry over a grid, one tile block after another. Knows no case and no reference.

To add an operation: a row in the table of its group (`floats`, `integers`, `shapes`, `accesses`,
`control`). What has no row is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilebuild.interpreter import elements
from tilebuild.interpreter.accesses import ACCESSES, idle_strides
from tilebuild.interpreter.control import CONTROL
from tilebuild.interpreter.elements import Array
from tilebuild.interpreter.floats import FLOATS
from tilebuild.interpreter.frame import DISPATCH_COST, Frame, Handler, Refused, TooLarge
from tilebuild.interpreter.integers import INTEGERS
from tilebuild.interpreter.memory import Memory, Region
from tilebuild.interpreter.shapes import SHAPES, content
from tilebuild.tileir.tree import Entry, TileType

HANDLERS: Mapping[str, Handler] = {**FLOATS, **INTEGERS, **SHAPES, **ACCESSES, **CONTROL}

#: Element operations that one run may take: some seconds.
BUDGET = 1_000_000_000


@dataclass(frozen=True)
class Run:
    """What is left of a run besides the memory."""

    saw_undetermined: bool
    spent: int


def run(
    entry: Entry,
    grid: tuple[int, int, int],
    arguments: Sequence[Array],
    memory: Memory,
    budget: int = BUDGET,
    large_poison: bool = False,
) -> Run:
    """Runs every block. Raises `Fault` for a program that goes wrong, `Refused` and `TooLarge`."""
    blocks = grid[0] * grid[1] * grid[2]
    if blocks * DISPATCH_COST * len(entry.body.operations) > budget:
        raise TooLarge
    frame = Frame(entry, memory, HANDLERS, grid, (0, 0, 0), _initial(entry, arguments), budget, large_poison)
    frame.globals = _place_globals(entry, memory)
    frame.idle = idle_strides(entry)
    with np.errstate(all="ignore"):
        for z in range(grid[2]):
            for y in range(grid[1]):
                for x in range(grid[0]):
                    frame.block = (x, y, z)
                    frame.run(entry.body)
    return Run(frame.saw_undetermined, budget - frame.budget)


def global_bytes(entry: Entry) -> int:
    """How much memory the module's own constants need."""
    return Memory.room([_size(_tile(constant.type)) for constant in entry.globals])


def _initial(entry: Entry, arguments: Sequence[Array]) -> list[Any]:
    values: list[Any] = [None] * len(entry.types)
    for parameter, argument in zip(entry.parameters, arguments, strict=True):
        values[parameter] = argument
    return values


def _place_globals(entry: Entry, memory: Memory) -> dict[str, int]:
    addresses: dict[str, int] = {}
    for constant in entry.globals:
        kind = _tile(constant.type)
        address = memory.reserve(_size(kind))
        strides = tuple(
            int(np.prod(kind.shape[axis + 1 :], dtype=np.int64)) for axis in range(len(kind.shape))
        )
        region = Region(constant.symbol, address, kind.shape, strides, kind.element)
        memory.place(region, content(constant.content, kind))
        addresses[constant.symbol] = address
    return addresses


def _tile(kind: object) -> TileType:
    if not isinstance(kind, TileType):
        raise Refused(f"a global of type {kind}")
    return kind


def _size(kind: TileType) -> int:
    return int(np.prod(kind.shape, dtype=np.int64)) * elements.item_bytes(kind.element)
