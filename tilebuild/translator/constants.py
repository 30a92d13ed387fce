"""Which numbers of a program are constants of the Python kernel: lengths of tiles, and terms of arithmetic.

A length takes the constant that the source names at that place: `shape=(TILE_M, TILE_K)`, position by
position, through simple assignments and the parameters of helper functions. Axes that must agree form
classes (operands and result of an addition, the factors of a product), so that one name holds for all of a
class, as the types of Rust want it. Lengths of which the source does not tell stay numbers. Knows no Rust.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeAlias

from tilebuild.tileir import tree as ir
from tilebuild.translator.names import snake
from tilebuild.translator.program import Parameter, Program, Source

Axis: TypeAlias = tuple[ir.Value, int]


class Named(int):
    """A number that is the constant `name` of the kernel; in all else the number."""

    name: str

    def __new__(cls, value: int, name: str) -> Named:
        made = super().__new__(cls, value)
        made.name = name
        return made


def rust_name(constant: str) -> str:
    return snake(constant).upper()


def generic_constants(parameters: Sequence[Parameter]) -> dict[str, int]:
    """The constants that a const generic can hold, by their Python names. A 1 stays a number: it decides how
    a tile is spread."""
    return {
        p.name: p.value
        for p in parameters
        if p.kind == "constant" and type(p.value) is int and 1 < p.value < 2**31
    }


def with_names(program: Program, source: Source) -> Program:
    """The program whose tile types hold `Named` lengths where the source names them."""
    constants = generic_constants(program.parameters)
    if not constants:
        return program
    axes = _Axes(program.entry)
    reader = _Reader(source, constants)
    locations = program.location_of()
    for operation in program.entry.walk():
        at = locations[id(operation)]
        if at is None or at.path != source.path:
            continue
        for value in operation.results:
            lengths = _lengths(program.entry.types[value])
            for axis, name in enumerate(reader.names(at, lengths) if lengths else ()):
                axes.vote((value, axis), name)
    entry = replace(program.entry, types=tuple(axes.types(constants)))
    return replace(program, entry=entry, named=True)


# --- axes that agree ------------------------------------------------------------------------------


def _lengths(kind: ir.Type) -> tuple[int, ...]:
    if isinstance(kind, ir.TileType):
        return kind.shape
    if isinstance(kind, ir.PartitionViewType | ir.StridedViewType | ir.GatherScatterViewType):
        return kind.tile
    return ()


class _Axes:
    """Classes of axes, each with the names that its members were given."""

    def __init__(self, entry: ir.Entry) -> None:
        self._entry = entry
        self._parent: dict[Axis, Axis] = {}
        self._votes: dict[Axis, list[str]] = {}
        for operation in entry.walk():
            for left, right in _ties(operation, entry):
                self._parent[self._find(left)] = self._find(right)

    def _find(self, axis: Axis) -> Axis:
        while (parent := self._parent.get(axis, axis)) != axis:
            axis = parent
        return axis

    def vote(self, axis: Axis, name: str) -> None:
        if name:
            self._votes.setdefault(self._find(axis), []).append(name)

    def types(self, constants: Mapping[str, int]) -> Iterator[ir.Type]:
        order = list(constants)
        names = {
            root: min(Counter(votes).items(), key=lambda item: (-item[1], order.index(item[0])))[0]
            for root, votes in self._votes.items()
        }
        for value, kind in enumerate(self._entry.types):
            lengths = tuple(
                Named(n, rust_name(name)) if (name := names.get(self._find((value, axis)), "")) else n
                for axis, n in enumerate(_lengths(kind))
            )
            if isinstance(kind, ir.TileType):
                yield replace(kind, shape=lengths)
            elif isinstance(kind, ir.PartitionViewType | ir.StridedViewType | ir.GatherScatterViewType):
                yield replace(kind, tile=lengths)
            else:
                yield kind


def _ties(operation: ir.Operation, entry: ir.Entry) -> Iterator[tuple[Axis, Axis]]:
    """Pairs of axes that have one length by the meaning of the operation."""

    def rank(value: ir.Value) -> int:
        return len(_lengths(entry.types[value]))

    def last(left: ir.Value, i: int, right: ir.Value, j: int) -> tuple[Axis, Axis]:
        return (left, rank(left) - i), (right, rank(right) - j)

    results = operation.results
    match operation.name:
        case "mmaf" | "mmai" | "mmaf_scaled":
            lhs, rhs, acc = (operation.group(g)[0] for g in ("lhs", "rhs", "acc"))
            for one in (acc, results[0]):
                yield from (last(lhs, 2, one, 2), last(rhs, 1, one, 1))
                yield from (((lhs, a), (one, a)) for a in range(rank(lhs) - 2))
                yield from (((rhs, a), (one, a)) for a in range(rank(rhs) - 2))
            yield last(lhs, 1, rhs, 2)
        case "permute":
            order = operation.attributes["permutation"]
            assert isinstance(order, tuple)
            for axis, origin in enumerate(order):
                assert isinstance(origin, int)
                yield (results[0], axis), (operation.operands[0], origin)
        case "reduce":
            dim = operation.attributes.get("dim", 0)
            assert isinstance(dim, int)
            for operand, result in zip(operation.operands, results, strict=True):
                kept = [a for a in range(rank(operand)) if a != dim]
                yield from (((operand, a), (result, i)) for i, a in enumerate(kept))
        case "reshape":
            yield from _reshaped(operation.operands[0], results[0], entry)
        case "extract" | "insert" | "unpack" | "pack":
            yield from _alike([*operation.group("destination"), *results], entry)
        case "for" | "loop" | "if":
            yield from _carried(operation, entry)
        case _:
            yield from _alike([*operation.operands, *results], entry)


def _alike(values: Sequence[ir.Value], entry: ir.Entry) -> Iterator[tuple[Axis, Axis]]:
    """The same axes of tiles of one rank, as far as their lengths are equal."""
    for index, left in enumerate(values):
        for right in values[index + 1 :]:
            mine, other = _lengths(entry.types[left]), _lengths(entry.types[right])
            if len(mine) == len(other):
                yield from (
                    ((left, a), (right, a))
                    for a, (m, n) in enumerate(zip(mine, other, strict=True))
                    if m == n and m != 1
                )


def _reshaped(source: ir.Value, result: ir.Value, entry: ir.Entry) -> Iterator[tuple[Axis, Axis]]:
    """The axes before and after, where axes of length 1 come or go."""
    before, after = (
        [(axis, n) for axis, n in enumerate(_lengths(entry.types[v])) if n != 1] for v in (source, result)
    )
    if [n for _, n in before] == [n for _, n in after]:
        yield from (((source, a), (result, b)) for (a, _), (b, _) in zip(before, after, strict=True))


def _carried(operation: ir.Operation, entry: ir.Entry) -> Iterator[tuple[Axis, Axis]]:
    """What a loop or branch takes, carries and gives."""
    results = operation.results
    if operation.name == "if":
        for region in operation.regions:
            if region.operations and region.operations[-1].name == "yield":
                yield from _pairs(region.operations[-1].operands, results, entry)
        return
    body = operation.regions[0]
    carried = body.arguments[1:] if operation.name == "for" else body.arguments
    yield from _pairs(operation.group("init"), carried, entry)
    if operation.name == "for":
        yield from _pairs(carried, results, entry)
    for end in _ends(body.operations):
        yield from _pairs(end.operands, results if end.name == "break" else carried, entry)


def _ends(operations: Iterable[ir.Operation]) -> Iterator[ir.Operation]:
    """The `continue` and `break` operations of one loop body, those inside its branches included."""
    for operation in operations:
        if operation.name in ("continue", "break"):
            yield operation
        elif operation.name == "if":
            for region in operation.regions:
                yield from _ends(region.operations)


def _pairs(
    left: Sequence[ir.Value], right: Sequence[ir.Value], entry: ir.Entry
) -> Iterator[tuple[Axis, Axis]]:
    for a, b in zip(left, right, strict=False):
        yield from _alike([a, b], entry)


# --- what the source says -------------------------------------------------------------------------


class _Reader:
    """Reads the lengths at a place of the source."""

    def __init__(self, source: Source, constants: Mapping[str, int]) -> None:
        self._tree = ast.parse(source.text)
        self._kernel = source.kernel
        self._constants = constants
        self._functions = [n for n in ast.walk(self._tree) if isinstance(n, ast.FunctionDef)]
        self._calls: dict[tuple[int, int], list[ast.Call]] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call):
                self._calls.setdefault((node.lineno, node.col_offset + 1), []).append(node)
        self.names = cache(self._names)

    def _names(self, at: ir.Location, lengths: tuple[int, ...]) -> tuple[str, ...]:
        """A constant's name or nothing for each length, from an argument of the call at this place that lists
        just these lengths."""
        for call in self._calls.get((at.line, at.column), []):
            listed = [k.value for k in call.keywords if k.arg == "shape"]
            for argument in [*listed, *call.args]:
                names = self._lengths(argument, at, lengths)
                if names:
                    return names
        return ()

    def _lengths(self, node: ast.expr, at: ir.Location, lengths: tuple[int, ...]) -> tuple[str, ...]:
        node, at = self._resolved(node, at)
        items = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
        if len(items) != len(lengths):
            return ()
        names = []
        for item, length in zip(items, lengths, strict=True):
            name = self._constant(item, at)
            if not name and not (isinstance(item, ast.Constant) and item.value == length):
                return ()
            if name and self._constants[name] != length:
                return ()
            names.append(name)
        return tuple(names)

    def _constant(self, node: ast.expr, at: ir.Location) -> str:
        node, at = self._resolved(node, at)
        return node.id if isinstance(node, ast.Name) and node.id in self._constants else ""

    def _resolved(self, node: ast.expr, at: ir.Location) -> tuple[ast.expr, ir.Location]:
        """What a name stands for: what it was assigned, or what the caller passed."""
        for _ in range(_HOPS):
            if not isinstance(node, ast.Name):
                break
            function = self._function(at.line)
            if function is None:
                break
            assigned = _assigned(function, node.id)
            if len(assigned) == 1:
                (node,) = assigned
                continue
            parameters = [a.arg for a in function.args.args]
            if function.name == self._kernel or node.id not in parameters or not at.callers or assigned:
                break
            outer = replace(at.callers[0], callers=at.callers[1:])
            passed = self._passed(outer, function, parameters.index(node.id), node.id)
            if passed is None:
                break
            node, at = passed, outer
        return node, at

    def _passed(self, at: ir.Location, function: ast.FunctionDef, index: int, name: str) -> ast.expr | None:
        for call in self._calls.get((at.line, at.column), []):
            if isinstance(call.func, ast.Name) and call.func.id == function.name:
                keyword = [k.value for k in call.keywords if k.arg == name]
                return keyword[0] if keyword else call.args[index] if index < len(call.args) else None
        return None

    def _function(self, line: int) -> ast.FunctionDef | None:
        """The innermost function around a line."""
        around = [f for f in self._functions if f.lineno <= line <= (f.end_lineno or f.lineno)]
        return max(around, key=lambda f: f.lineno, default=None)


#: No chain of assignments and calls is followed further.
_HOPS = 16


def _assigned(function: ast.FunctionDef, name: str) -> list[ast.expr]:
    """What a function assigns to a name."""
    return [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
    ]
