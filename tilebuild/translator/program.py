"""What is translated: the Tile IR of one kernel for one signature and architecture, and what the Python
source adds.

Knows neither Rust nor files; `tilebuild.tools.translate` fills it from an action's inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilebuild.tileir.tree import Entry, Location, Operation, Value


@dataclass(frozen=True)
class Parameter:
    """A parameter of the Python function: `kind` is array, scalar, constant or list."""

    name: str
    kind: str
    dtype: str = ""
    ndim: int = 0
    index_dtype: str = "int32"
    value: bool | int | float | str | None = None
    disjoint: bool = True  # no two elements of the array share memory
    lengths: tuple[int | None, ...] = ()  # those that the signature fixes
    strides: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Program:
    """`names` and `dtypes` are those of the Python source, by value; `locations` by operation, in program
    order."""

    instance: str
    entry: Entry
    parameters: tuple[Parameter, ...]
    names: tuple[str, ...]
    dtypes: tuple[str, ...]
    locations: tuple[Location | None, ...]
    hints: Mapping[str, int]
    target: str
    named: bool = False  # whether numbers that are constants of the kernel go by their names

    def location_of(self) -> dict[int, Location | None]:
        """Locations by the identity of the operation, for as long as `entry` lives."""
        return {
            id(o): at or o.location for o, at in zip(self.entry.walk(), self._padded_locations(), strict=True)
        }

    def _padded_locations(self) -> tuple[Location | None, ...]:
        count = sum(1 for _ in self.entry.walk())
        return (*self.locations, *[None] * (count - len(self.locations)))[:count]

    def name(self, value: Value) -> str:
        """The variable of the Python source; `self` is one of methods of tiles, which no kernel names."""
        name = self.names[value] if value < len(self.names) else ""
        return "" if name == "self" else name

    def dtype(self, value: Value) -> str:
        return self.dtypes[value] if value < len(self.dtypes) else ""


@dataclass(frozen=True)
class Source:
    """The Python text of the kernel: for names, docstrings and comments."""

    path: str
    text: str
    kernel: str


def parameters_of(interface: Mapping[str, Any], signature: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """The parameters as the front end lists them, with what only the signature knows."""
    listed = []
    for item, constraint in zip(interface["parameters"], signature["parameters"], strict=True):
        array = constraint.get("array") or constraint.get("list") or {}
        listed.append(
            Parameter(
                name=item["name"],
                kind=item["kind"],
                dtype=item.get("dtype", ""),
                ndim=item.get("ndim", 0),
                index_dtype=item.get("index_dtype", "int32"),
                value=item.get("value"),
                disjoint=not array.get("may_alias_internally", False),
                lengths=tuple(array.get("shape_constant", ())),
                strides=tuple(array.get("stride_constant", ())),
            )
        )
    return tuple(listed)


def uses(entry: Entry) -> dict[Value, list[Operation]]:
    """Who reads each value, in program order; an operation once for each operand."""
    found: dict[Value, list[Operation]] = {}
    for operation in entry.walk():
        for value in operation.operands:
            found.setdefault(value, []).append(operation)
    return found
