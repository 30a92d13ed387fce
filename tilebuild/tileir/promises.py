"""What a program promises of its values and advises the compiler. Knows facts and hints, not what is
computed.

A promise (`assume`, `inbounds`) that does not hold makes the program undefined: a port may promise less than
the original, never more. Promises that hold by construction are none: a block's index is not negative, and
neither is an induction variable that starts at zero. Advice (`optimization_hints`) changes no result."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tilebuild.tileir.literal import resolve_hints
from tilebuild.tileir.normalize import Event, Fact, NormalForm
from tilebuild.tileir.terms import Term, Terms

_NOT_NEGATIVE = frozenset(
    {"get_tile_block_id", "get_num_tile_blocks", "get_index_space_shape", "get_tensor_shape"}
)


@dataclass(frozen=True)
class Promise:
    """A promise or an advice that one side lacks; `index` is the operation of the side that has it."""

    index: int
    fact: str


def unfounded(terms: Terms, has: NormalForm, claims: NormalForm, side: str) -> Promise | None:
    """The first promise of `claims`, called `side`, that does not follow from those of `has`."""
    known = _Facts(terms, has)
    for term, facts in claims.facts.items():
        for fact in facts:
            if not known.imply(term, fact):
                return Promise(fact.index, f"only {side} promises {_text(fact)} of {_value(terms, term)}")
    for term, event in claims.events.items():
        given, claimed = _inbounds(has.events[term]), _inbounds(event)
        if any(c and not g for c, g in zip(claimed, given or [False] * len(claimed), strict=True)):
            return Promise(event.index, f"only {side} promises that {event.operation.name} is in bounds")
    return None


def advice(python: NormalForm, rust: NormalForm, architecture: str) -> Promise | None:
    """The first advice that differs; of the entry (index -1) or of a memory operation."""
    for one, other, index, name in _advised(python, rust, architecture):
        for key in sorted(one.keys() | other.keys()):
            if one.get(key) != other.get(key):
                return Promise(
                    index, f"{name}: {key} is {_said(one, key)} in Python, {_said(other, key)} in Rust"
                )
    return None


def _advised(
    python: NormalForm, rust: NormalForm, architecture: str
) -> Iterable[tuple[dict[str, int | bool], dict[str, int | bool], int, str]]:
    yield (
        resolve_hints(python.entry.hints, architecture),
        resolve_hints(rust.entry.hints, architecture),
        -1,
        "entry",
    )
    for term, event in python.events.items():
        other = rust.events[term]
        yield _hints(event, architecture), _hints(other, architecture), event.index, event.operation.name


def _hints(event: Event, architecture: str) -> dict[str, int | bool]:
    return resolve_hints(event.operation.attributes.get("optimization_hints", {}), architecture)


def _said(hints: dict[str, int | bool], key: str) -> str:
    return str(hints[key]).lower() if key in hints else "not given"


def _inbounds(event: Event) -> list[bool]:
    flags = event.operation.attributes.get("inbounds", ())
    return [bool(f) for f in flags] if isinstance(flags, tuple) else []


class _Facts:
    """The promises of one program, asked whether another one follows."""

    def __init__(self, terms: Terms, form: NormalForm) -> None:
        self._terms = terms
        self._form = form

    def imply(self, term: Term, fact: Fact) -> bool:
        wanted = dict(fact.predicate)
        own = [
            dict(f.predicate)
            for f in self._form.facts.get(term, ())
            if f.guard <= fact.guard and self._around(f.loop, fact.loop)
        ]
        if wanted["predicate"] == "div_by":
            return self._divides(term, wanted, own)
        if wanted["predicate"] == "bounded":
            return self._bounded(term, wanted, own)
        return wanted in own

    def _around(self, outer: Term, inner: Term) -> bool:
        """Whether a promise made in one loop, or outside of all, holds in another one."""
        return outer == inner or self._terms[outer].name == "entry"

    def _divides(self, term: Term, wanted: dict[str, object], own: list[dict[str, object]]) -> bool:
        plain = "every" not in wanted
        divisors = [f["divisor"] for f in own if f["predicate"] == "div_by" and ("every" not in f) == plain]
        if not plain:
            return wanted in own
        known = math.lcm(*(d for d in divisors if isinstance(d, int)))
        divisor = wanted["divisor"]
        assert isinstance(divisor, int)
        bits = self._terms.constant_bits(term)
        return known % divisor == 0 or (bits is not None and bits % divisor == 0)

    def _bounded(self, term: Term, wanted: dict[str, object], own: list[dict[str, object]]) -> bool:
        bounds = [f for f in own if f["predicate"] == "bounded"]
        lows = [f["lower"] for f in bounds if "lower" in f]
        highs = [f["upper"] for f in bounds if "upper" in f]
        low = max((n for n in lows if isinstance(n, int)), default=None)
        high = min((n for n in highs if isinstance(n, int)), default=None)
        if low is None and self._not_negative(term):
            low = 0
        bits = self._terms.constant_bits(term)
        if bits is not None:
            low = high = bits
        lower, upper = wanted.get("lower"), wanted.get("upper")
        above = not isinstance(lower, int) or (low is not None and low >= lower)
        below = not isinstance(upper, int) or (high is not None and high <= upper)
        return above and below

    def _not_negative(self, term: Term) -> bool:
        node = self._terms[term]
        if node.name in _NOT_NEGATIVE:
            return True
        if node.name == "induction":
            start = self._start(node.operands[0])
            return self._known_not_negative(start)
        return False

    def _start(self, loop: Term) -> Term:
        """The lower bound of the loop that a term identifies: `event (at (for lower upper step) …)`."""
        there = self._terms[self._terms[loop].operands[0]]
        return self._terms[there.operands[0]].operands[0]

    def _known_not_negative(self, term: Term) -> bool:
        bits = self._terms.constant_bits(term)
        if bits is not None:
            return bits >= 0
        facts = (dict(f.predicate) for f in self._form.facts.get(term, ()) if not f.guard)
        lows = (f.get("lower") for f in facts if f["predicate"] == "bounded")
        return self._not_negative(term) or any(isinstance(low, int) and low >= 0 for low in lows)


def _text(fact: Fact) -> str:
    predicate = dict(fact.predicate)
    if predicate["predicate"] == "div_by":
        return f"divisibility by {predicate['divisor']}"
    if predicate["predicate"] == "bounded":
        return f"bounds {predicate.get('lower', '?')} to {predicate.get('upper', '?')}"
    return str(predicate["predicate"])


def _value(terms: Terms, term: Term) -> str:
    node = terms[term]
    return f"parameter {node.get('position')}" if node.name == "parameter" else f"a {node.name}"
