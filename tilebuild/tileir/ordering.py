"""Whether one program orders its memory operations at least as strictly as another. Knows tokens, not what
is computed.

Both programs do the same apart from order, so that events and loops are matched by their terms.
`first_missing` asks of each event of the one side whether whatever its token waits for is also waited for on
the other side.

A token is a set of *atoms*: events, tokens carried by a loop, results of loops and of `if`. What a side is
asked for is never understated, what it offers never overstated: a token that only one branch gives counts as
asked for, and as offered only where the other branch does not matter. Tokens carried by two loops are
compared as the loops run: one carried token covers another if it does before the first iteration and, where
it does before an iteration, does after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tilebuild.tileir.liveness import exits
from tilebuild.tileir.normalize import Event, NormalForm
from tilebuild.tileir.terms import Term
from tilebuild.tileir.tree import Block, Operation, TokenType, Value


@dataclass(frozen=True)
class _EventAtom:
    event: Term


@dataclass(frozen=True)
class _CarriedAtom:
    """A token argument of a loop's body, by the loop's term and the argument's place."""

    loop: Term
    position: int


@dataclass(frozen=True)
class _LastAtom:
    """A token result of a loop."""

    loop: Term
    position: int


@dataclass(frozen=True)
class _ChoiceAtom:
    """A token result of an `if`, by the value."""

    result: Value


@dataclass(frozen=True)
class _UnknownAtom:
    """A token that is not followed further: it covers nothing and nothing covers it."""

    token: Value


_Atom: TypeAlias = "_EventAtom | _CarriedAtom | _LastAtom | _ChoiceAtom | _UnknownAtom"


@dataclass(frozen=True)
class Missing:
    """`later` waits for `earlier` on one side only; indices of operations there, -1 for no single
    operation."""

    later: int
    earlier: int


def first_missing(asked: NormalForm, offered: NormalForm) -> Missing | None:
    """The first wait of `asked` that `offered` lacks."""
    return _Coverage(_Tokens(asked), _Tokens(offered)).first_missing()


class _Tokens:
    """Where the tokens of one program come from."""

    def __init__(self, form: NormalForm) -> None:
        self.form = form
        self._source: dict[Value, tuple[Operation, int]] = {}
        self._argument: dict[Value, tuple[Operation, int]] = {}
        self._loop_of: dict[int, Term] = {id(loop): term for term, loop in form.loops.items()}
        self._outer: dict[Term, Term | None] = {}
        self._collect(form.entry.body, None)

    def _collect(self, block: Block, loop: Term | None) -> None:
        for operation in block.operations:
            for position, result in enumerate(operation.results):
                self._source[result] = (operation, position)
            inner = self._loop_of.get(id(operation), loop)
            if inner is not loop and inner is not None:
                self._outer[inner] = loop
            for region in operation.regions:
                for position, argument in enumerate(region.arguments):
                    self._argument[argument] = (operation, position)
                self._collect(region, inner)

    def loops_around(self, loop: Term | None) -> Iterator[Term]:
        while loop is not None and loop in self._outer:
            yield loop
            loop = self._outer[loop]

    def of_event(self, event: Term) -> list[_Atom]:
        """What an event waits for."""
        return self.of_operation(self.form.events[event].operation)

    def of_operation(self, operation: Operation) -> list[_Atom]:
        types = self.form.entry.types
        tokens = (v for v in operation.operands if isinstance(types[v], TokenType))
        return [atom for token in tokens for atom in self.atoms(token)]

    def atoms(self, token: Value) -> list[_Atom]:
        if token in self._argument:
            return self._of_argument(*self._argument[token])
        operation, position = self._source[token]
        if token in self.form.tokens:
            return [_EventAtom(self.form.tokens[token])]
        if operation.name in ("for", "loop"):
            loop = self._loop_of.get(id(operation))
            return self._of_idle_loop(operation, position) if loop is None else [_LastAtom(loop, position)]
        if operation.name == "if":
            return [_ChoiceAtom(token)]
        # `make_token` has no operands, `join_tokens` has tokens, a load that is not needed hands on its own.
        return self.of_operation(operation)

    def _of_idle_loop(self, loop: Operation, position: int) -> list[_Atom]:
        """The token result of a loop without effects: what it was given, where it hands on just that."""
        given = [self.atoms(loop.group("init")[position])] if loop.name == "for" else []
        kind = "continue" if loop.name == "for" else "break"
        given += [self.atoms(e.operands[position]) for e in exits(loop) if e.name == kind]
        alike = all(set(atoms) == set(given[0]) for atoms in given)
        return given[0] if given and alike else [_UnknownAtom(loop.results[position])]

    def _of_argument(self, loop: Operation, position: int) -> list[_Atom]:
        carried = position - (loop.name == "for")
        argument = loop.regions[0].arguments[position]
        ends = [e for e in exits(loop) if e.name == "continue"]
        if id(loop) not in self._loop_of or all(e.operands[carried] == argument for e in ends):
            return self.atoms(loop.group("init")[carried])
        return [_CarriedAtom(self._loop_of[id(loop)], carried)]

    def first(self, loop: Term, position: int) -> list[_Atom]:
        return self.atoms(self.form.loops[loop].group("init")[position])

    def leaving(self, loop: Term, position: int, kind: str) -> dict[Term, list[_Atom]]:
        """The token at one place of each reachable exit of a kind, by the exit's condition."""
        return {
            self.form.exit_guards[id(e)]: self.atoms(e.operands[position])
            for e in exits(self.form.loops[loop])
            if e.name == kind and id(e) in self.form.exit_guards
        }

    def branches(self, choice: _ChoiceAtom) -> tuple[list[_Atom], list[_Atom]]:
        operation, position = self._source[choice.result]
        ends = [region.operations[-1] for region in operation.regions]
        then, other = (self.atoms(e.operands[position]) if e.name == "yield" else None for e in ends)
        # A branch that leaves by an exit gives no token: whoever runs behind the `if` came by the other one.
        return then if then is not None else other or [], other if other is not None else then or []

    def condition(self, choice: _ChoiceAtom) -> tuple[Term, bool] | None:
        operation, _ = self._source[choice.result]
        return self.form.conditions.get(operation.group("condition")[0])

    def is_for(self, loop: Term) -> bool:
        return self.form.loops[loop].name == "for"


#: Something to be shown: that an offered atom covers an asked one.
_Goal: TypeAlias = "tuple[_Atom, _Atom]"


class _Coverage:
    def __init__(self, asked: _Tokens, offered: _Tokens) -> None:
        self._asked = asked
        self._offered = offered
        # Goals that were shown, or are taken for granted while they are shown: loops make them circular.
        self._held: set[_Goal] = set()
        self._refuted: set[_Goal] = set()

    def first_missing(self) -> Missing | None:
        for event, where in self._asked.form.events.items():
            offered = self._offered.of_event(event)
            for atom in self._waits(where, self._asked.of_event(event)):
                if not self._settled(atom, offered):
                    earlier = (
                        self._asked.form.events[atom.event].index if isinstance(atom, _EventAtom) else -1
                    )
                    return Missing(where.index, earlier)
        return None

    def _waits(self, event: Event, atoms: Iterable[_Atom]) -> Iterator[_Atom]:
        """What an event has to wait for: a choice asks for both branches, and loads need not wait for
        loads."""
        for atom in atoms:
            if isinstance(atom, _ChoiceAtom):
                then, other = self._asked.branches(atom)
                yield from self._waits(event, [*then, *other])
            elif isinstance(atom, _EventAtom) and _is_weak_load(event) and self._is_weak_load(atom):
                yield from self._waits(event, self._asked.of_event(atom.event))
            else:
                yield atom

    def _is_weak_load(self, atom: _EventAtom) -> bool:
        return _is_weak_load(self._asked.form.events[atom.event])

    def _settled(self, atom: _Atom, offered: list[_Atom]) -> bool:
        """Whether something offered covers the atom, once no goal taken for granted was refuted on the
        way."""
        while True:
            before = len(self._refuted)
            self._held.clear()
            if not self._any(atom, offered):
                return False
            if len(self._refuted) == before:
                return True

    def _any(self, atom: _Atom, offered: Iterable[_Atom]) -> bool:
        return any(self._covers(atom, one) for one in offered)

    def _all(self, asked: Iterable[_Atom], offered: list[_Atom]) -> bool:
        for atom in asked:
            if isinstance(atom, _ChoiceAtom):
                then, other = self._asked.branches(atom)
                if not self._all([*then, *other], offered):
                    return False
            elif not self._any(atom, offered):
                return False
        return True

    def _covers(self, asked: _Atom, offered: _Atom) -> bool:
        goal = (asked, offered)
        if goal in self._refuted:
            return False
        if goal in self._held:
            return True
        self._held.add(goal)
        if self._show(asked, offered):
            return True
        self._held.discard(goal)
        self._refuted.add(goal)
        return False

    def _show(self, asked: _Atom, offered: _Atom) -> bool:
        match offered:
            case _EventAtom(event):
                return asked == offered or self._any(asked, self._offered.of_event(event))
            case _ChoiceAtom():
                return self._by_choice(asked, offered)
            case _CarriedAtom(loop, position) | _LastAtom(loop, position):
                if type(asked) is type(offered) and getattr(asked, "loop", None) == loop:
                    return self._alike(asked, offered)
                return self._from_outside(asked, loop, position, isinstance(offered, _LastAtom))
            case _UnknownAtom():
                return False

    def _by_choice(self, asked: _Atom, choice: _ChoiceAtom) -> bool:
        then, other = self._offered.branches(choice)
        in_then, in_other = self._any(asked, then), self._any(asked, other)
        literal = self._offered.condition(choice)
        if in_then and in_other:
            return True
        if literal is None or not isinstance(asked, _EventAtom):
            return False
        # An event that runs only where the branch was taken need not be waited for where it was not.
        condition, holds = literal
        guard = self._asked.form.events[asked.event].guard
        return (in_then and literal in guard) or (in_other and (condition, not holds) in guard)

    def _alike(self, asked: _Atom, offered: _Atom) -> bool:
        """The tokens of two matched loops, step by step."""
        assert isinstance(asked, _CarriedAtom | _LastAtom)
        assert isinstance(offered, _CarriedAtom | _LastAtom)
        loop = asked.loop
        if isinstance(asked, _LastAtom) and not self._asked.is_for(loop):
            return self._at_exits(loop, asked.position, offered.position, "break")
        first = self._all(
            self._asked.first(loop, asked.position), self._offered.first(loop, offered.position)
        )
        return first and self._at_exits(loop, asked.position, offered.position, "continue")

    def _at_exits(self, loop: Term, asked: int, offered: int, kind: str) -> bool:
        offers = self._offered.leaving(loop, offered, kind)
        return all(
            guard in offers and self._all(atoms, offers[guard])
            for guard, atoms in self._asked.leaving(loop, asked, kind).items()
        )

    def _from_outside(self, asked: _Atom, loop: Term, position: int, last: bool) -> bool:
        """A token from a loop covers what happened before the loop if it did so all the time."""
        if loop in self._loops_of(asked):
            return False
        if last and not self._offered.is_for(loop):
            breaks = self._offered.leaving(loop, position, "break")
            return all(self._any(asked, atoms) for atoms in breaks.values())
        ends = self._offered.leaving(loop, position, "continue")
        return self._any(asked, self._offered.first(loop, position)) and all(
            self._any(asked, atoms) for atoms in ends.values()
        )

    def _loops_of(self, asked: _Atom) -> Iterator[Term]:
        """The loops inside which an asked atom lies."""
        match asked:
            case _EventAtom(event):
                yield from self._asked.loops_around(self._asked.form.events[event].loop)
            case _CarriedAtom(loop, _):
                yield from self._asked.loops_around(loop)
            case _LastAtom(loop, _):
                yield from list(self._asked.loops_around(loop))[1:]


def _is_weak_load(event: Event) -> bool:
    operation = event.operation
    return operation.name in ("load_view_tko", "load_ptr_tko") and (
        operation.attributes["memory_ordering"] == "weak"
    )
