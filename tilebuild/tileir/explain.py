"""Where two programs that do different things first differ, as a place and one line. Knows terms, no
meaning."""

from __future__ import annotations

from dataclasses import dataclass

from tilebuild.tileir.normalize import NormalForm
from tilebuild.tileir.terms import Node, Term, Terms
from tilebuild.tileir.tree import GatherScatterViewType, PartitionViewType, StridedViewType, Type

#: Terms that only say where something happens or how often it was seen.
_STRUCTURE = frozenset({"at", "event", "guard", "result", "column", "step", "repeated", "last", "exit"})


@dataclass(frozen=True)
class Place:
    python_op: int
    rust_op: int
    fact: str


def first_difference(terms: Terms, python: NormalForm, rust: NormalForm) -> Place:
    """The first item of Python, in program order, that Rust lacks, followed down to the smallest
    difference."""
    left = [t for t in python.items if t not in rust.items]
    right = [t for t in rust.items if t not in python.items]
    if not left:
        return Place(-1, rust.items[right[0]], f"only Rust has this {_name(terms, right[0])}")
    if not right:
        return Place(python.items[left[0]], -1, f"only Python has this {_name(terms, left[0])}")
    one = min(left, key=lambda t: python.items[t])
    other = _counterpart(terms, one, right, rust)
    if other is None:
        return Place(python.items[one], -1, f"only Python has this {_name(terms, one)}")
    place = Place(python.items[one], rust.items[other], "")
    return _Descent(terms, python, rust).down(one, other, place)


def _counterpart(terms: Terms, one: Term, right: list[Term], rust: NormalForm) -> Term | None:
    """The first item of the other side that is the same kind of thing."""
    name = _name(terms, one)
    alike = [t for t in right if _name(terms, t) == name]
    return min(alike, key=lambda t: rust.items[t], default=None)


def _name(terms: Terms, term: Term) -> str:
    """The operation that an item is about: `event (at (store …) …)`, `repeated (event (at (for …) …) …)`."""
    node = terms[term]
    while node.name in ("event", "at", "repeated"):
        node = terms[node.operands[0]]
    return node.name


class _Descent:
    def __init__(self, terms: Terms, python: NormalForm, rust: NormalForm) -> None:
        self._terms = terms
        self._python = python
        self._rust = rust

    def down(self, one: Term, other: Term, place: Place) -> Place:
        """Follows the first operand that differs until names or attributes do."""
        seen: set[tuple[Term, Term]] = set()
        while (one, other) not in seen:
            seen.add((one, other))
            left, right = self._terms[one], self._terms[other]
            place = Place(
                self._python.place.get(one, place.python_op),
                self._rust.place.get(other, place.rust_op),
                place.fact,
            )
            fact = self._fact(left, right)
            if fact:
                return Place(place.python_op, place.rust_op, fact)
            one, other = next((a, b) for a, b in zip(left.operands, right.operands, strict=True) if a != b)
        return place

    def _fact(self, left: Node, right: Node) -> str:
        """What two nodes differ in apart from their operands; empty if only operands do."""
        if left.name != right.name:
            return f"{self._said(left)} in Python, {self._said(right)} in Rust"
        if left.name == "guard" and left != right:
            return "it runs under other conditions"
        if left.attributes != right.attributes:
            one, other = dict(left.attributes), dict(right.attributes)
            name = next(n for n in sorted(one.keys() | other.keys()) if one.get(n) != other.get(n))
            if left.name == "constant":
                return f"constant {self._said(left)} in Python, {self._said(right)} in Rust"
            return f"{left.name}: {name} is {one.get(name)} in Python, {other.get(name)} in Rust"
        if left.type != right.type:
            return f"{left.name}: {_types(left.type, right.type)}"
        if len(left.operands) != len(right.operands):
            what = "the loop carries or leaves" if left.name in _STRUCTURE else f"{left.name} has"
            return f"{what} {len(left.operands)} things in Python, {len(right.operands)} in Rust"
        return ""

    def _said(self, node: Node) -> str:
        if node.name == "constant":
            return f"{node.get('bits')} : {node.type}"
        if node.name == "parameter":
            return f"parameter {node.get('position')}"
        if node.name == "result":
            return f"the result of {_name(self._terms, node.operands[0])}"
        return {
            "carried": "a value the loop carries",
            "induction": "the loop index",
            "last": "a loop's result",
        }.get(node.name, node.name)


def _types(left: Type | None, right: Type | None) -> str:
    """What two types differ in: of two views of one kind the first part, else the types."""
    if type(left) is type(right) and isinstance(
        left, PartitionViewType | StridedViewType | GatherScatterViewType
    ):
        one, other = vars(left), vars(right)
        name = next(n for n in one if one[n] != other[n])
        if name != "tensor":
            return (
                f"{name} is {one[name] or 'undetermined'} in Python, {other[name] or 'undetermined'} in Rust"
            )
    return f"{left} in Python, {right} in Rust"
