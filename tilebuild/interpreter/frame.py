"""What an operation sees while it runs: the values of its block, memory, and where in the grid it is.
Knows no operation.

The cost of a run is counted, not timed, so that the decision that a program is too large is the same on
every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tilebuild.interpreter.memory import Memory, MemoryFault
from tilebuild.tileir.tree import Block, Element, Entry, Operation, TileType, Type, Value

#: What dispatching one operation costs, in element operations.
DISPATCH_COST = 1000
_ENDS = frozenset({"yield", "continue", "break", "return"})


class Refused(Exception):
    """The interpreter does not have this operation, or not in this form."""


class TooLarge(Exception):
    """The program needs more element operations than its budget."""


class Undefined(Exception):
    """The program does what the language leaves undefined: a false assumption, an assertion that fails."""


class Fault(Exception):
    """A program went wrong, and where: the operation by its index in `Entry.walk()`, and the tile block."""

    def __init__(self, fact: str, operation: str, index: int, block: tuple[int, int, int]) -> None:
        super().__init__(f"{operation} (operation {index}) in block {block}: {fact}")
        self.fact, self.operation, self.index, self.block = fact, operation, index, block


@dataclass(frozen=True)
class Signal:
    """How a block of operations ended, and with which values."""

    kind: str
    values: tuple[Any, ...]


#: A function of the frame, the operation and the values of its operands; it returns the values of the
#: results, or a signal that ends the surrounding block too.
Handler: TypeAlias = Callable[["Frame", Operation, Sequence[Any]], "Sequence[Any] | Signal"]


@dataclass
class Frame:
    """One tile block of a launch."""

    entry: Entry
    memory: Memory
    handlers: Mapping[str, Handler]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    values: list[Any]
    budget: int
    #: Undetermined lanes hold NaN, or the largest number where NaN could go unnoticed.
    large_poison: bool = False
    saw_undetermined: bool = False
    globals: dict[str, int] = field(default_factory=dict)
    #: Values that nothing depends on; promises about them are not held against the program.
    idle: frozenset[Value] = frozenset()

    def type(self, value: Value) -> Type:
        return self.entry.types[value]

    def tile(self, value: Value) -> TileType:
        kind = self.entry.types[value]
        if not isinstance(kind, TileType):
            raise Refused(f"expected a tile, not {kind}")
        return kind

    def element(self, value: Value) -> Element:
        return self.tile(value).element

    def operands(self, operation: Operation, group: str) -> tuple[Any, ...]:
        """The values of one named group of operands."""
        return tuple(self.values[value] for value in operation.group(group))

    def operand(self, operation: Operation, group: str) -> Any:
        """The value of a group of one, or None where it is absent."""
        values = operation.group(group)
        return self.values[values[0]] if values else None

    def spend(self, element_operations: int) -> None:
        self.budget -= element_operations
        if self.budget < 0:
            raise TooLarge

    def run(self, block: Block, arguments: Sequence[Any] = ()) -> Signal:
        """Runs the operations of a block with these arguments until one of them ends it."""
        for value, argument in zip(block.arguments, arguments, strict=True):
            self.values[value] = argument
        for operation in block.operations:
            operands = [self.values[value] for value in operation.operands]
            if operation.name in _ENDS:
                return Signal(operation.name, tuple(operands))
            try:
                outcome = self._call(operation, operands)
            except (MemoryFault, Undefined) as error:
                raise self._fault(str(error), operation) from None
            if isinstance(outcome, Signal):
                return outcome
            for value, result in zip(operation.results, outcome, strict=True):
                self.values[value] = result
        return Signal("yield", ())

    def _call(self, operation: Operation, operands: Sequence[Any]) -> Sequence[Any] | Signal:
        handler = self.handlers.get(operation.name)
        if handler is None:
            raise Refused(f"the interpreter has no operation {operation.name!r}")
        self.spend(DISPATCH_COST + self._size(operation))
        return handler(self, operation, operands)

    def _fault(self, fact: str, culprit: Operation) -> Fault:
        index = next(i for i, operation in enumerate(self.entry.walk()) if operation is culprit)
        return Fault(fact, culprit.name, index, self.block)

    def _size(self, operation: Operation) -> int:
        """Elements of the largest operand or result."""
        size = 1
        for value in (*operation.results, *operation.operands):
            kind = self.entry.types[value]
            if isinstance(kind, TileType):
                count = 1
                for extent in kind.shape:
                    count *= extent
                size = max(size, count)
        return size
