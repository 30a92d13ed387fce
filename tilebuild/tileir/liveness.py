"""Which operations and values a program needs. Knows which operations have effects, but not what they
compute.

An operation is live if it writes, prints, checks or waits, if it decides whether such an operation runs, or
if one of its results reaches one. A weak load whose tile is not used is not live. Tokens order operations
and keep none alive. A loop without effects whose results are not used is not live, although it might never
end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tilebuild.tileir.operations import EFFECTS
from tilebuild.tileir.tree import Block, Entry, Operation, TokenType, Value

_LOOPS = ("for", "loop")
_LOADS = ("load_view_tko", "load_ptr_tko")


@dataclass
class Liveness:
    values: set[Value] = field(default_factory=set)
    #: By identity: an entry may hold two equal operations.
    operations: set[int] = field(default_factory=set)

    def holds(self, operation: Operation) -> bool:
        return id(operation) in self.operations


def liveness(entry: Entry) -> Liveness:
    return _Marking(entry).run()


def exits(loop: Operation) -> Iterator[Operation]:
    """The `continue` and `break` operations of a loop, in program order."""
    yield from _ends(loop.regions[0], ("continue", "break"))


def _ends(block: Block, names: tuple[str, ...]) -> Iterator[Operation]:
    for operation in block.operations:
        if operation.name in names:
            yield operation
        elif operation.name == "if":
            for region in operation.regions:
                yield from _ends(region, names)


class _Marking:
    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._live = Liveness()
        self._parent: dict[int, Operation] = {}
        self._source: dict[Value, tuple[Operation, int]] = {}  # result -> operation, position
        self._argument: dict[Value, tuple[Operation, int]] = {}  # block argument -> owner, position
        self._values: list[Value] = []
        self._operations: list[Operation] = []
        self._index(entry.body, None)

    def run(self) -> Liveness:
        for operation in self._entry.walk():
            if _is_root(operation) or (operation.name == "return" and id(operation) in self._parent):
                self._need(operation)
        while self._values or self._operations:
            if self._operations:
                self._operation(self._operations.pop())
            else:
                self._value(self._values.pop())
        return self._live

    def _index(self, block: Block, owner: Operation | None) -> None:
        for operation in block.operations:
            if owner is not None:
                self._parent[id(operation)] = owner
            for position, result in enumerate(operation.results):
                self._source[result] = (operation, position)
            for region in operation.regions:
                for position, argument in enumerate(region.arguments):
                    self._argument[argument] = (operation, position)
                self._index(region, operation)

    def _need(self, operation: Operation) -> None:
        if id(operation) not in self._live.operations:
            self._live.operations.add(id(operation))
            self._operations.append(operation)

    def _mark(self, *values: Value) -> None:
        for value in values:
            if value not in self._live.values and not isinstance(self._entry.types[value], TokenType):
                self._live.values.add(value)
                self._values.append(value)

    def _operation(self, operation: Operation) -> None:
        parent = self._parent.get(id(operation))
        if parent is not None:
            self._need(parent)
        match operation.name:
            case "if":
                self._mark(*operation.group("condition"))
            case "for":
                self._mark(*(v for g in ("lower", "upper", "step") for v in operation.group(g)))
            case "reduce" | "scan":
                self._mark(*operation.operands)
                self._mark(*(v for end in _ends(operation.regions[0], ("yield",)) for v in end.operands))
            case "break" | "continue" | "return":
                pass  # which values leave is decided by the loop's results and arguments
            case _:
                self._mark(*operation.operands)
        if operation.name in _LOOPS:
            for end in exits(operation):
                self._need(end)

    def _value(self, value: Value) -> None:
        if value in self._source:
            operation, position = self._source[value]
            self._need(operation)
            self._result(operation, position)
        elif value in self._argument:
            operation, position = self._argument[value]
            self._need(operation)
            if operation.name in _LOOPS:
                self._carry(operation, position - (operation.name == "for"))

    def _result(self, operation: Operation, position: int) -> None:
        if operation.name == "if":
            ends = [
                end for region in operation.regions for end in region.operations[-1:] if end.name == "yield"
            ]
            self._mark(*(end.operands[position] for end in ends))
        elif operation.name == "for":
            self._carry(operation, position)
        elif operation.name == "loop":
            self._mark(*(e.operands[position] for e in exits(operation) if e.name == "break"))

    def _carry(self, loop: Operation, position: int) -> None:
        if position < 0:
            return  # the induction variable
        self._mark(loop.regions[0].arguments[position + (loop.name == "for")], loop.group("init")[position])
        self._mark(*(e.operands[position] for e in exits(loop) if e.name == "continue"))


def _is_root(operation: Operation) -> bool:
    weak_load = operation.name in _LOADS and operation.attributes["memory_ordering"] == "weak"
    return operation.name in EFFECTS and not weak_load
