"""Whether two programs are written the same: operations, order, operands, attributes. Knows no meaning.

Ignored are names and symbols, operations that a program does not need, and how hints name their target.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from tilebuild.tileir.terms import hashable
from tilebuild.tileir.tree import AttributeValue, Block, Entry, Operation, Value


@dataclass(frozen=True)
class Mismatch:
    """Indices of the first operations that differ, -1 where a side has no more."""

    python_op: int
    rust_op: int
    fact: str


def first_mismatch(python: Entry, rust: Entry, architecture: str) -> Mismatch | None:
    left, right = list(_lines(python, architecture)), list(_lines(rust, architecture))
    for one, other in zip(left, right, strict=False):
        if one.what != other.what:
            return Mismatch(one.index, other.index, _fact(one, other))
    if len(left) != len(right):
        longer, side = (left, "Rust") if len(left) > len(right) else (right, "Python")
        rest = longer[min(len(left), len(right))]
        index = rest.index
        fact = f"{side} ends where the other side has {rest.name}"
        return Mismatch(index, -1, fact) if side == "Rust" else Mismatch(-1, index, fact)
    return None


def resolve_hints(
    hints: Mapping[str, Mapping[str, int | bool]] | AttributeValue, architecture: str
) -> dict[str, int | bool]:
    """What holds on one architecture: its own hints over the default ones; advice that says nothing is
    dropped."""
    if not isinstance(hints, Mapping):
        return {}
    merged: dict[str, int | bool] = {}
    for target in ("default", architecture):
        of_target = hints.get(target, {})
        assert isinstance(of_target, Mapping)
        merged |= {k: v for k, v in of_target.items() if isinstance(v, int)}
    return {k: v for k, v in sorted(merged.items()) if (k, v) != ("allow_tma", True)}


@dataclass(frozen=True)
class _Line:
    """One operation, or the end of a region (without an index of its own)."""

    index: int
    name: str
    what: Hashable
    operands: tuple[int, ...] = ()
    attributes: tuple[tuple[str, Hashable], ...] = ()


def _lines(entry: Entry, architecture: str) -> Iterator[_Line]:
    kept = _needed(entry)
    numbers: dict[Value, int] = {}
    indices = {id(operation): index for index, operation in enumerate(entry.walk())}

    def define(values: tuple[Value, ...]) -> tuple[str, ...]:
        for value in values:
            numbers[value] = len(numbers)
        return tuple(str(entry.types[v]) for v in values)

    def lines(block: Block) -> Iterator[_Line]:
        arguments = define(block.arguments)
        for operation in block.operations:
            if id(operation) not in kept:
                continue
            index = indices[id(operation)]
            operands = tuple(numbers[v] for v in operation.operands)
            attributes = _attributes(operation, architecture)
            groups = tuple((k, n) for k, n in operation.segments.items() if n)
            types = tuple(str(entry.types[v]) for v in operation.results)
            what = (operation.name, operands, attributes, groups, types, arguments)
            yield _Line(index, operation.name, what, operands, attributes)
            for number, region in enumerate(operation.regions):
                yield _Line(index, "region", ("region", number))
                yield from lines(region)
            define(operation.results)

    parameters = define(entry.parameters)
    yield _Line(-1, "entry", (parameters, tuple(resolve_hints(entry.hints, architecture).items())))
    yield from lines(entry.body)


def _attributes(operation: Operation, architecture: str) -> tuple[tuple[str, Hashable], ...]:
    attributes = dict(operation.attributes)
    hints = resolve_hints(attributes.pop("optimization_hints", {}), architecture)
    if "bits" in attributes:  # the exact form of the same numbers
        attributes.pop("value", None)
        attributes.pop("identities", None)
    if not any(_flags(attributes.get("inbounds", ()))):
        attributes.pop("inbounds", None)
    return (*hashable(attributes), *((f"hint {k}", v) for k, v in hints.items()))


def _flags(value: AttributeValue) -> tuple[AttributeValue, ...]:
    return value if isinstance(value, tuple) else ()


def _needed(entry: Entry) -> set[int]:
    """All operations but constants that nothing uses, by identity."""
    used = {v for operation in entry.walk() for v in operation.operands}
    return {id(o) for o in entry.walk() if o.name != "constant" or o.results[0] in used}


def _fact(python: _Line, rust: _Line) -> str:
    if python.name == "entry":
        return "the entries have other parameters or hints"
    if python.name != rust.name:
        return f"{python.name} in Python, {rust.name} in Rust"
    if python.attributes != rust.attributes:
        left, right = dict(python.attributes), dict(rust.attributes)
        for name in sorted(left.keys() | right.keys()):
            if left.get(name) != right.get(name):
                return f"{python.name}: {name} is {left.get(name)} in Python, {right.get(name)} in Rust"
    if python.operands != rust.operands:
        return f"{python.name}: other operands"
    return f"{python.name}: other types"
