"""Idioms of Rust that the IR spells out: a variable that a loop updates, `while`; and what nobody reads goes.

    let larger = max(m, x);                 m = max(m, x);
    …                               ->      …
    m = larger;

Knows Rust statements only.
"""

from __future__ import annotations

from collections import Counter

from tilebuild.translator.rust.tree import (
    Assign,
    Block,
    Call,
    Expr,
    For,
    If,
    IfValue,
    Jump,
    Let,
    LetTuple,
    Local,
    Loop,
    Method,
    Statement,
    Unsafe,
    Var,
    While,
    blocks,
    expressions,
    operands,
    reads,
    set_expressions,
    subexpressions,
    walk,
    with_operands,
)


def raise_idioms(body: Block) -> None:
    for statement in walk(body):
        for inner in blocks(statement):
            _update_in_place(inner, body)
    _reuse(body)
    _whiles(body)


# --- one variable for two loops -------------------------------------------------------------------


def _reuse(block: Block) -> None:
    """`let mut b = a;` behind the last use of the mutable `a`: `a` goes on under its own name."""
    for statement in list(block):
        for inner in blocks(statement):
            _reuse(inner)
        if not (isinstance(statement, Let) and statement.mutable and isinstance(statement.value, Var)):
            continue
        place = next(i for i, s in enumerate(block) if s is statement)
        source = statement.value.local
        own = any(isinstance(s, Let) and s.mutable and s.local is source for s in block[:place])
        if own and not any(_mentions(s, source) for s in block[place + 1 :]):
            del block[place]
            _rename(block[place:], statement.local, source)
            for later in walk(block[place:]):
                if isinstance(later, Assign) and later.local is statement.local:
                    later.local = source


# --- carried variables ----------------------------------------------------------------------------


def _update_in_place(block: Block, whole: Block) -> None:
    """Moves the assignment of a carried variable to where its new value is made."""
    for assign in [s for s in block if isinstance(s, Assign)]:
        if not isinstance(assign.value, Var):
            continue
        source = assign.value.local
        place = next((i for i, s in enumerate(block) if isinstance(s, Let) and s.local is source), None)
        if place is None:
            continue
        let = block[place]
        assert isinstance(let, Let)
        end = next(i for i, s in enumerate(block) if s is assign)
        between = block[place + 1 : end]
        if let.mutable:
            continue
        if any(_mentions(s, assign.local) for s in between) or _captured(let, assign.local, between):
            continue
        if _read_outside(whole, block, source):
            continue
        block[place] = Assign(assign.local, let.value, let.location)
        del block[end]
        _rename(block[place + 1 :], source, assign.local)


def _mentions(statement: Statement, local: Local) -> bool:
    """Whether a statement or its blocks read or assign a variable."""
    return any(
        local in set(reads(s)) or (isinstance(s, Assign) and s.local is local) for s in walk([statement])
    )


def _captured(let: Let, local: Local, between: Block) -> bool:
    return any(isinstance(s, Jump) for s in walk(between))


def _read_outside(whole: Block, block: Block, local: Local) -> bool:
    inside = {id(s) for s in walk(block)}
    return any(local in set(reads(s)) for s in walk(whole) if id(s) not in inside)


def _rename(block: Block, old: Local, new: Local) -> None:
    for statement in walk(block):
        set_expressions(statement, tuple(_renamed(e, old, new) for e in expressions(statement)))


def _renamed(expression: Expr, old: Local, new: Local) -> Expr:
    if isinstance(expression, Var):
        return Var(new) if expression.local is old else expression
    if isinstance(expression, IfValue):
        return IfValue(
            _renamed(expression.condition, old, new),
            expression.then,
            _renamed(expression.then_value, old, new),
            expression.otherwise,
            _renamed(expression.otherwise_value, old, new),
        )
    return with_operands(expression, tuple(_renamed(o, old, new) for o in operands(expression)))


# --- while ----------------------------------------------------------------------------------------


def _whiles(body: Block) -> None:
    for index, statement in enumerate(body):
        for inner in blocks(statement):
            _whiles(inner)
        if isinstance(statement, Loop) and (found := _as_while(statement)) is not None:
            body[index] = found


def _as_while(loop: Loop) -> While | None:
    """`loop { let c = …; if c { } else { break; } … }` as `while … { … }`."""
    match loop.body:
        case [
            Let(local=local, value=condition, mutable=False),
            If(Var(read), [], [Jump("break")]),
            *rest,
        ] if read is local and not any(local in set(reads(s)) for s in walk(rest)):
            return While(condition, rest, loop.location)
        case [If(condition, [], [Jump("break")]), *rest]:
            return While(condition, rest, loop.location)
        case _:
            return None


# --- what nobody reads ----------------------------------------------------------------------------


def prune(body: Block) -> None:
    """Removes pure definitions that nobody reads, until there are none."""
    while True:
        counts: Counter[Local] = Counter(local for s in walk(body) for local in reads(s))
        assigns = [s for s in walk(body) if isinstance(s, Assign)]
        counts.update({s.local for s in assigns if counts[s.local] or not _is_pure(s.value)})
        if not _prune(body, counts):
            return


def _prune(block: Block, counts: Counter[Local]) -> bool:
    kept: Block = []
    for statement in block:
        if isinstance(statement, Let) and not counts[statement.local] and _is_pure(statement.value):
            continue
        if isinstance(statement, Assign) and not counts[statement.local]:
            continue
        if isinstance(statement, LetTuple):
            names = tuple(n if n is not None and counts[n] else None for n in statement.locals)
            statement.locals = names
        if isinstance(statement, For) and statement.local is not None and not counts[statement.local]:
            statement.local = None
        kept.append(statement)
    changed = len(kept) != len(block)
    block[:] = kept
    for statement in block:
        for inner in blocks(statement):
            changed |= _prune(inner, counts)
    return changed


#: Unsafe functions that touch no memory.
_PURE_UNSAFE = ("make_", "assume_", "fpow", "exp_", "tanh_", "insert")


def _is_pure(expression: Expr) -> bool:
    for part in subexpressions(expression):
        match part:
            case IfValue():
                return False
            case Unsafe(value=Call(function=name)) if not name.startswith(_PURE_UNSAFE):
                return False
            case Unsafe(value=Method(name=name)) if name != "partition_full_mut":
                return False
            case Call(function="print_tko"):
                return False
            case _:
                pass
    return True
