"""How two Tile IR programs relate: the relations that can be decided without assembling. Knows no file and
no cubin.

The normal form is decided also where the programs are written the same, so that a difference in meaning is
found whatever the machine code says. Relations that hold only one way are told apart by direction: the port
may order more (`stronger-order`) or know less (`different-hints`), but it must neither order less nor
promise what the original does not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from tilebuild.tileir import literal, promises
from tilebuild.tileir.explain import first_difference
from tilebuild.tileir.liveness import liveness
from tilebuild.tileir.normalize import NormalForm, new_terms, normalize
from tilebuild.tileir.ordering import Missing, first_missing
from tilebuild.tileir.terms import Terms
from tilebuild.tileir.tree import Entry, Type, Value

#: Terms nest as deep as programs are long.
_RECURSION = 100_000


@dataclass(frozen=True)
class Difference:
    """Where the programs first differ: indices of operations in program order, -1 for none on that side."""

    kind: str  # ir, hints or interface
    python_op: int
    rust_op: int
    fact: str


@dataclass(frozen=True)
class Relation:
    """What holds between the programs. `difference` says what is in the way of the next better relation."""

    interface: str
    same_ir: bool = False
    same_normal_form: bool = False
    stronger_order: bool = False
    different_hints: bool = False
    difference: Difference | None = None


def compare(python: Entry, rust: Entry, architecture: str) -> Relation:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _RECURSION))
    try:
        return _compare(python, rust, architecture)
    finally:
        sys.setrecursionlimit(before)


def interface(python: Entry, rust: Entry) -> str:
    """How the parameter lists relate: `same`, `trailing-unused`, `permuted` or `different`."""
    left, right = _parameter_types(python), _parameter_types(rust)
    if left == right:
        return "same"
    if left == right[: len(left)] and not _used(rust, len(left)):
        return "trailing-unused"
    return "permuted" if sorted(map(str, left)) == sorted(map(str, right)) else "different"


def _compare(python: Entry, rust: Entry, architecture: str) -> Relation:
    layout = interface(python, rust)
    mismatch = literal.first_mismatch(python, rust, architecture)
    terms = new_terms()
    order = _first_use(python), _first_use(rust)
    positions = order if layout == "permuted" else (None, None)
    left, right = normalize(python, terms, positions[0]), normalize(rust, terms, positions[1])
    if left.items.keys() != right.items.keys():
        return Relation(layout, difference=_different(terms, left, right, layout))
    lacking = first_missing(left, right)
    if lacking is not None:
        return Relation(layout, difference=_weaker_order(terms, left, right, lacking))
    excess = promises.unfounded(terms, left, right, "Rust")
    if excess is not None:
        return Relation(layout, difference=Difference("hints", -1, excess.index, excess.fact))
    less = promises.advice(left, right, architecture) or promises.unfounded(terms, right, left, "Python")
    if less is not None:
        place = Difference("hints", less.index, _matching(left, right, less.index), less.fact)
        return Relation(layout, different_hints=True, difference=place)
    extra = first_missing(right, left)
    if extra is not None:
        fact = f"only Rust orders {_name(right, extra.later)} after {_name(right, extra.earlier)}"
        place = Difference("ir", _matching(right, left, extra.later), extra.later, fact)
        return Relation(layout, stronger_order=True, difference=place)
    if mismatch is None:
        return Relation(layout, same_ir=True, same_normal_form=True)
    written = Difference("ir", mismatch.python_op, mismatch.rust_op, mismatch.fact)
    return Relation(layout, same_normal_form=True, difference=written)


def _different(terms: Terms, left: NormalForm, right: NormalForm, layout: str) -> Difference:
    found = first_difference(terms, left, right)
    if layout == "different":
        return Difference("interface", found.python_op, found.rust_op, f"other parameters; {found.fact}")
    return Difference("ir", found.python_op, found.rust_op, found.fact)


def _weaker_order(terms: Terms, left: NormalForm, right: NormalForm, lacking: Missing) -> Difference:
    fact = f"only Python orders {_name(left, lacking.later)} after {_name(left, lacking.earlier)}"
    return Difference("ir", lacking.later, _matching(left, right, lacking.later), fact)


def _matching(one: NormalForm, other: NormalForm, index: int) -> int:
    """The index on the other side of the event at an index of this one."""
    term = next((t for t, i in one.items.items() if i == index), None)
    return -1 if term is None else other.items.get(term, -1)


def _name(form: NormalForm, index: int) -> str:
    if index < 0:
        return "an earlier iteration"
    operations = list(form.entry.walk())
    return operations[index].name


def _parameter_types(entry: Entry) -> list[Type]:
    return [entry.types[v] for v in entry.parameters]


def _used(entry: Entry, start: int) -> bool:
    """Whether a parameter from `start` on decides anything."""
    terms = new_terms()
    form = normalize(entry, terms)
    late = {
        terms.make("parameter", (), entry.types[v], position=p)
        for p, v in enumerate(entry.parameters)
        if p >= start
    }
    return any(term in late for item in form.items for term in _reachable(terms, item))


def _reachable(terms: Terms, root: int) -> Iterator[int]:
    seen, open_terms = {root}, [root]
    while open_terms:
        term = open_terms.pop()
        yield term
        for operand in terms[term].operands:
            if operand not in seen:
                seen.add(operand)
                open_terms.append(operand)


def _first_use(entry: Entry) -> list[int]:
    """For each parameter its place in the order of first use; a promise is no use, what it is made of is."""
    live = liveness(entry)
    root = {parameter: parameter for parameter in entry.parameters}
    order: dict[Value, None] = {}
    for operation in entry.walk():
        if not live.holds(operation):
            continue
        if operation.name == "assume" and operation.operands[0] in root:
            root[operation.results[0]] = root[operation.operands[0]]
        else:
            order |= {root[v]: None for v in operation.operands if v in root}
    places = {parameter: place for place, parameter in enumerate(order | dict.fromkeys(entry.parameters))}
    return [places[parameter] for parameter in entry.parameters]
