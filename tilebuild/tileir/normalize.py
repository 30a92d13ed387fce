"""The normal form of a program: what it does, without how it is written. Knows no text and no file.

`normalize` evaluates a program symbolically. Pure operations become terms (`terms`, `rules`); what remains
are

- *events*: operations with an effect, each with what it does, in which loop and under which conditions;
- *loops*: bounds, what one iteration carries to the next, how it ends;
- *facts*: what the program promises of values by `assume`.

Conditions replace `if`: an event after `if c { return }` is one under the condition that `c` does not hold.
A value that a loop carries is known by its first value and by what an iteration makes of it; two of which
both are equal are one. Order of memory operations is not part of the terms; `ordering` compares it by the
tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tilebuild.tileir import rules
from tilebuild.tileir.liveness import liveness
from tilebuild.tileir.operations import EFFECTS
from tilebuild.tileir.terms import Term, Terms, hashable
from tilebuild.tileir.tree import (
    AttributeValue,
    Block,
    Entry,
    Operation,
    TileType,
    TokenType,
    Type,
    Value,
)

#: A condition and whether it holds.
Literal: TypeAlias = tuple[Term, bool]
Guard: TypeAlias = frozenset[Literal]

_ALWAYS: Guard = frozenset()
_STORES = frozenset({"store_view_tko", "atomic_red_view_tko"})
#: Compared apart from what an operation does: advice for the compiler, and promises.
_ADVICE = ("optimization_hints", "inbounds")


@dataclass(frozen=True)
class Event:
    operation: Operation
    index: int  # of the operation, in program order
    guard: Guard
    loop: Term  # the innermost loop around it


@dataclass(frozen=True)
class Fact:
    """`assume` of one value: the attributes of the operation, and where it holds."""

    predicate: tuple[tuple[str, object], ...]
    guard: Guard
    loop: Term
    index: int


@dataclass
class NormalForm:
    """`items` are the terms of events and of loops with the index of their operation; two programs do the
    same, order of memory operations aside, if their items are equal."""

    entry: Entry
    items: dict[Term, int] = field(default_factory=dict)
    events: dict[Term, Event] = field(default_factory=dict)
    #: Loops by the term that identifies them, and the term by the loop's operation.
    loops: dict[Term, Operation] = field(default_factory=dict)
    facts: dict[Term, list[Fact]] = field(default_factory=dict)
    #: Which operation made a term first.
    place: dict[Term, int] = field(default_factory=dict)
    #: The event of each token that a live operation gives, by value.
    tokens: dict[Value, Term] = field(default_factory=dict)
    #: The literal of each condition of an `if`, by value.
    conditions: dict[Value, Literal] = field(default_factory=dict)
    #: The guard of each `continue` and `break` that can be reached, by the identity of the operation.
    exit_guards: dict[int, Term] = field(default_factory=dict)


def normalize(entry: Entry, terms: Terms, positions: Iterable[int] | None = None) -> NormalForm:
    """`positions` says for each parameter which one it stands for; by default its own place."""
    return _Evaluation(entry, terms, tuple(positions or range(len(entry.parameters)))).run()


def new_terms() -> Terms:
    """Terms under all rules of the normal form; programs to be compared share them."""
    return Terms(rules.RULES)


@dataclass
class _Exit:
    kind: str
    guard: Term
    terms: tuple[Term | None, ...]


@dataclass
class _Frame:
    """The loop, or the entry, whose body is being evaluated."""

    identity: Term
    exits: list[_Exit] = field(default_factory=list)


@dataclass
class _End:
    """How a block ends: under which conditions what follows it runs (None: never), and what it yields."""

    guard: Guard | None
    yields: tuple[Value, ...] = ()


class _Evaluation:
    def __init__(self, entry: Entry, terms: Terms, positions: tuple[int, ...]) -> None:
        self._entry = entry
        self._terms = terms
        self._live = liveness(entry)
        self._index = {id(operation): number for number, operation in enumerate(entry.walk())}
        self._term: dict[Value, Term] = {
            value: terms.make("parameter", (), entry.types[value], position=position)
            for value, position in zip(entry.parameters, positions, strict=True)
        }
        self._frame = _Frame(terms.make("entry"))
        self._seen: dict[Term, int] = {}
        self._last_assert: Term | None = None
        self._form = NormalForm(entry)

    def run(self) -> NormalForm:
        self._block(self._entry.body, _ALWAYS)
        return self._form

    # Blocks

    def _block(self, block: Block, guard: Guard) -> _End:
        current: Guard | None = guard
        for operation in block.operations:
            if current is None:
                break
            match operation.name:
                case "yield":
                    return _End(current, operation.operands)
                case "break" | "continue" | "return":
                    self._exit(operation, current)
                    return _End(None)
            if self._live.holds(operation):
                current = self._operation(operation, current)
        return _End(current)

    def _operation(self, operation: Operation, guard: Guard) -> Guard | None:
        """Evaluates one operation; returns under which conditions the next one runs."""
        name = operation.name
        if name == "if":
            return self._if(operation, guard)
        if name in ("for", "loop"):
            return self._loop(operation, guard)
        if name == "assume":
            self._assume(operation, guard)
        elif name in EFFECTS:
            self._event(operation, guard)
        elif name in ("reduce", "scan"):
            self._combine(operation)
        elif name not in ("make_token", "join_tokens"):
            self._pure(operation)
        return guard

    def _exit(self, operation: Operation, guard: Guard) -> None:
        terms = tuple(self._term.get(v) for v in operation.operands)
        term = self._guard_term(guard)
        self._form.exit_guards[id(operation)] = term
        self._frame.exits.append(_Exit(operation.name, term, terms))

    # Pure operations

    def _define(self, value: Value, term: Term, operation: Operation) -> None:
        self._term[value] = term
        self._form.place.setdefault(term, self._index[id(operation)])

    def _pure(self, operation: Operation) -> None:
        types = self._entry.types
        if operation.name == "constant":
            self._define(operation.results[0], self._constant(operation), operation)
            return
        operands = tuple(self._term[v] for v in operation.operands)
        attributes = dict(hashable(operation.attributes))
        for position, result in enumerate(operation.results):
            if len(operation.results) > 1:
                attributes["index"] = position
            term = self._terms.make(operation.name, operands, types[result], **attributes)
            self._define(result, term, operation)

    def _constant(self, operation: Operation) -> Term:
        """A splat of a scalar where all elements are written as one, else the elements."""
        kind = self._entry.types[operation.results[0]]
        assert isinstance(kind, TileType)
        content = operation.attributes.get("bits", operation.attributes["value"])
        if isinstance(content, int):
            return self._terms.splat(self._terms.constant(int(content), kind), kind)
        return self._terms.make("constant", (), kind, **dict(hashable({"elements": content})))

    def _combine(self, operation: Operation) -> None:
        """`reduce` and `scan`: the body is a function of numbered arguments."""
        (body,) = operation.regions
        for position, argument in enumerate(body.arguments):
            kind = self._entry.types[argument]
            self._term[argument] = self._terms.make("combined", (), kind, position=position)
        end = self._block(body, _ALWAYS)
        operands = [self._term[v] for v in (*operation.operands, *end.yields)]
        attributes = {k: v for k, v in operation.attributes.items() if k != "identities"}
        for position, result in enumerate(operation.results):
            kind = self._entry.types[result]
            term = self._terms.make(
                operation.name, operands, kind, index=position, **dict(hashable(attributes))
            )
            self._define(result, term, operation)

    def _assume(self, operation: Operation, guard: Guard) -> None:
        term = self._term[operation.operands[0]]
        self._term[operation.results[0]] = term
        fact = Fact(hashable(operation.attributes), guard, self._frame.identity, self._index[id(operation)])
        self._form.facts.setdefault(term, []).append(fact)

    # Effects

    def _event(self, operation: Operation, guard: Guard) -> None:
        types = self._entry.types
        operands = [self._term[v] for v in operation.operands if not isinstance(types[v], TokenType)]
        if operation.name in _STORES:
            view = operation.operands.index(operation.group("view")[0])
            operands[view] = rules.without_padding(self._terms, operands[view])
        if operation.name == "assert" and self._last_assert is not None:
            operands.append(self._last_assert)
        attributes: dict[str, AttributeValue] = {
            name: value for name, value in operation.attributes.items() if name not in _ADVICE
        }
        attributes["groups"] = tuple(f"{k} {n}" for k, n in operation.segments.items() if k != "token")
        results = [v for v in operation.results if not isinstance(types[v], TokenType)]
        kind = types[results[0]] if results else None
        what = self._terms.make(operation.name, operands, kind, **dict(hashable(attributes)))
        term = self._identify(what, guard)
        if operation.name == "assert":
            self._last_assert = term
        self._form.events[term] = Event(operation, self._index[id(operation)], guard, self._frame.identity)
        self._form.items[term] = self._index[id(operation)]
        for result in operation.results:
            if isinstance(types[result], TokenType):
                self._form.tokens[result] = term
            else:
                self._define(result, self._terms.make("result", (term,), types[result]), operation)

    def _identify(self, what: Term, guard: Guard) -> Term:
        """One term for each of several equal things in the same place: they are counted."""
        there = self._terms.make("at", (what, self._frame.identity, self._guard_term(guard)))
        number = self._seen.get(there, 0)
        self._seen[there] = number + 1
        return self._terms.make("event", (there,), number=number)

    # Conditions

    def _literal(self, condition: Term, holds: bool) -> Literal:
        simpler = rules.negated(self._terms, condition)
        return (condition, holds) if simpler is None else self._literal(simpler, not holds)

    def _guard_term(self, guard: Guard) -> Term:
        ordered = sorted(guard)
        return self._terms.make(
            "guard", (term for term, _ in ordered), holds=tuple(holds for _, holds in ordered)
        )

    def _if(self, operation: Operation, guard: Guard) -> Guard | None:
        condition = self._term[operation.group("condition")[0]]
        known = self._terms.constant_bits(condition)
        self._form.conditions[operation.group("condition")[0]] = self._literal(condition, True)
        ends = [
            self._branch(operation, number, guard | {self._literal(condition, holds)})
            if known is None
            else self._branch(operation, number, guard)
            if bool(known) == holds
            else _End(None)
            for number, holds in enumerate((True, False))
        ]
        self._choices(operation, condition, ends)
        return self._after(guard, condition, ends, known is not None)

    def _branch(self, operation: Operation, number: int, guard: Guard) -> _End:
        return (
            self._block(operation.regions[number], guard) if number < len(operation.regions) else _End(guard)
        )

    def _choices(self, operation: Operation, condition: Term, ends: list[_End]) -> None:
        for position, result in enumerate(operation.results):
            if result not in self._live.values:
                continue
            values = [self._term[end.yields[position]] for end in ends if end.guard is not None]
            if len(values) == 2:
                term = self._terms.make("if", (condition, *values), self._entry.types[result])
                self._define(result, term, operation)
            elif values:
                self._define(result, values[0], operation)

    def _after(self, guard: Guard, condition: Term, ends: list[_End], known: bool) -> Guard | None:
        """What holds behind an `if`: nothing new, unless a branch left by an exit."""
        then, other = (end.guard for end in ends)
        if then is None or other is None:
            return other if then is None else then
        expected = (guard | {self._literal(condition, True)}, guard | {self._literal(condition, False)})
        if known or (then, other) == expected:
            return guard
        either = self._terms.make("either", (self._guard_term(then - guard), self._guard_term(other - guard)))
        return guard | {(either, True)}

    # Loops

    def _loop(self, operation: Operation, guard: Guard) -> Guard:
        stub = self._stub(operation, guard)
        outer = self._frame
        carried = _Carried(self, operation, stub)
        while True:
            saved = self._save()
            self._frame = _Frame(stub)
            carried.bind(self._term)
            self._block(operation.regions[0], _ALWAYS)
            exits = self._frame.exits
            if carried.settle(exits):
                break
            self._restore(saved)
        self._frame = outer
        self._form.loops[stub] = operation
        whole = carried.whole(exits)
        self._form.items[whole] = self._index[id(operation)]
        self._form.place.setdefault(whole, self._index[id(operation)])
        for result, term in carried.results(exits, whole):
            self._define(result, term, operation)
        if any(e.kind == "return" for e in exits):
            return guard | {(self._terms.make("returned", (whole,)), False)}
        return guard

    def _stub(self, operation: Operation, guard: Guard) -> Term:
        """What identifies a loop before its body is known: its bounds and its place."""
        bounds = [self._term[v] for g in ("lower", "upper", "step") for v in operation.group(g)]
        unsigned = bool(operation.attributes.get("unsigned"))
        return self._identify(self._terms.make(operation.name, bounds, unsigned=unsigned), guard)

    def _save(self) -> tuple[dict[Term, int], Term | None, NormalForm]:
        form = self._form
        copy = replace(
            form,
            items=dict(form.items),
            events=dict(form.events),
            loops=dict(form.loops),
            facts={term: list(facts) for term, facts in form.facts.items()},
        )
        return dict(self._seen), self._last_assert, copy

    def _restore(self, saved: tuple[dict[Term, int], Term | None, NormalForm]) -> None:
        self._seen, self._last_assert, self._form = saved

    # For `_Carried`

    def term_of(self, value: Value) -> Term:
        return self._term[value]

    def type_of(self, value: Value) -> Type:
        return self._entry.types[value]

    def is_live(self, value: Value) -> bool:
        return value in self._live.values

    @property
    def terms(self) -> Terms:
        return self._terms


class _Carried:
    """The values that a loop carries, and what they turn out to be.

    At first each is known by its first value. Where an iteration makes something else of two that are known
    alike, they are told apart by it, and the body is evaluated again; a value that no iteration changes is
    its first value."""

    def __init__(self, evaluation: _Evaluation, loop: Operation, stub: Term) -> None:
        self._evaluation = evaluation
        self._terms = evaluation.terms
        self._loop = loop
        self._stub = stub
        arguments = loop.regions[0].arguments
        self._induction = arguments[0] if loop.name == "for" else None
        self._arguments = arguments[1:] if loop.name == "for" else arguments
        self._live = [i for i, a in enumerate(self._arguments) if evaluation.is_live(a)]
        self._first = {i: evaluation.term_of(loop.group("init")[i]) for i in self._live}
        self._unchanged: set[int] = set()
        self._known = self._start()

    def _start(self) -> dict[int, Term]:
        changing = (i for i in self._live if i not in self._unchanged)
        return {i: self._terms.make("carried", (self._stub, self._first[i]), self._type(i)) for i in changing}

    def _type(self, position: int) -> Type:
        return self._evaluation.type_of(self._arguments[position])

    def _of(self, position: int) -> Term:
        return self._first[position] if position in self._unchanged else self._known[position]

    def bind(self, terms: dict[Value, Term]) -> None:
        """Gives the body's arguments their terms."""
        if self._induction is not None:
            kind = self._evaluation.type_of(self._induction)
            terms[self._induction] = self._terms.make("induction", (self._stub,), kind)
        for position in self._live:
            terms[self._arguments[position]] = self._of(position)

    def settle(self, exits: list[_Exit]) -> bool:
        """Whether the terms given to the arguments fit what the body made of them."""
        columns = {i: self._column(exits, "continue", i) for i in self._known}
        apart: dict[Term, set[Term]] = {}
        for position, column in columns.items():
            apart.setdefault(self._known[position], set()).add(column)
        if any(len(columns_of_one) > 1 for columns_of_one in apart.values()):
            self._known = {
                i: self._terms.make("carried", (known, columns[i]), self._type(i))
                if len(apart[known]) > 1
                else known
                for i, known in self._known.items()
            }
            return False
        unchanged = {i for i, known in self._known.items() if self._stays(exits, i, known)}
        if not unchanged:
            return True
        self._unchanged |= unchanged
        self._known = self._start()
        return False

    def _stays(self, exits: list[_Exit], position: int, known: Term) -> bool:
        return all(e.terms[position] == known for e in exits if e.kind == "continue")

    def _column(self, exits: list[_Exit], kind: str, position: int) -> Term:
        """What leaves at one place of all exits of a kind, with the conditions of each."""
        pairs = sorted((e.guard, e.terms[position]) for e in exits if e.kind == kind)
        return self._terms.make("column", (t for pair in pairs for t in pair if t is not None))

    def whole(self, exits: list[_Exit]) -> Term:
        """The loop: its place and bounds, each carried value and how it changes, and its exits."""
        steps = {
            self._terms.make("step", (known, self._column(exits, "continue", i)))
            for i, known in self._known.items()
        }
        ends = sorted((e.guard, self._terms.make("exit", (e.guard,), kind=e.kind)) for e in exits)
        return self._terms.make("repeated", (self._stub, *sorted(steps), *(term for _, term in ends)))

    def results(self, exits: list[_Exit], whole: Term) -> list[tuple[Value, Term]]:
        found: list[tuple[Value, Term]] = []
        for position, result in enumerate(self._loop.results):
            if not self._evaluation.is_live(result):
                continue
            if self._loop.name == "for" and position in self._unchanged:
                found.append((result, self._first[position]))
                continue
            what = self._of(position) if self._loop.name == "for" else self._column(exits, "break", position)
            kind = self._evaluation.type_of(result)
            found.append((result, self._terms.make("last", (whole, what), kind)))
        return found
