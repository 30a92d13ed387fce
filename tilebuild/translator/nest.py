"""One operation a line -> nested expressions.

    let difference = logits - row_max.broadcast(shape![1, 64]);
    let numerator = exp(difference);

becomes

    let numerator = exp(logits - row_max.broadcast(shape![1, 64]));

A variable that is read once, right behind its definition, gives way to its value, as long as all operations
keep their order: the order of the operations is part of what makes the machine code equal. Variables that
the Python source names stay, except where the next step carries the same name. Knows no Tile IR.
"""

from __future__ import annotations

from collections import Counter

from tilebuild.translator.rust.tree import (
    Assign,
    Binary,
    Block,
    Call,
    Descriptor,
    Do,
    Expr,
    IfValue,
    Let,
    LetTuple,
    Local,
    Macro,
    Member,
    Method,
    Number,
    Path,
    Reference,
    Statement,
    Unsafe,
    Var,
    blocks,
    expressions,
    operands,
    reads,
    set_expressions,
    subexpressions,
    walk,
    with_operands,
)
from tilebuild.translator.rust.types import TileType

#: An expression deeper than this is easier to read in two steps.
_DEPTH = 6


#: Functions of whose arguments cutile infers no types: what stands there has a name.
_OPAQUE = ("Some", "load_", "store_", "atomic_", "join_tokens")

#: Functions that take the statements directly before them as a combiner: nothing comes between.
_COMBINING = ("reduce_with_", "scan_with_")


def nest(body: Block) -> None:
    """Nests in place, innermost blocks included."""
    counts: Counter[Local] = Counter(local for statement in walk(body) for local in reads(statement))
    assigned = {s.local for s in walk(body) if isinstance(s, Assign)}
    _block(body, counts, assigned)


def _block(body: Block, counts: Counter[Local], assigned: set[Local]) -> None:
    for statement in body:
        for inner in blocks(statement):
            _block(inner, counts, assigned)
        if isinstance(statement, Let | Assign) and isinstance(statement.value, IfValue):
            statement.value = _branches(statement.value, counts)
    kept: Block = []
    for statement in body:
        _absorb(statement, kept, counts, assigned)
        kept.append(statement)
    body[:] = kept


def _branches(value: IfValue, counts: Counter[Local]) -> IfValue:
    """The same `if` without variables that only name the value of a branch."""
    return IfValue(
        value.condition,
        value.then,
        _tail(value.then, value.then_value, counts),
        value.otherwise,
        _tail(value.otherwise, value.otherwise_value, counts),
    )


def _tail(block: Block, value: Expr, counts: Counter[Local]) -> Expr:
    last = block[-1] if block else None
    if (
        isinstance(last, Let)
        and isinstance(value, Var)
        and last.local is value.local
        and counts[last.local] == 1
        and last.infers
        and not isinstance(last.value, Unsafe | IfValue)
    ):
        block.pop()
        return last.value
    return value


def _absorb(statement: Statement, before: Block, counts: Counter[Local], assigned: set[Local]) -> None:
    """Takes the definitions directly before a statement into it, last first, while the order of operations
    holds."""
    for let in [s for s in before if isinstance(s, Let) and _is_constant(s.value)]:
        # The place of a constant among the operations does not matter.
        position = _position(statement, let.local)
        if position and _may_move(let, statement, counts, assigned) and _fits(statement, let, position):
            _replace(statement, let.local, let.value)
            before[:] = [s for s in before if s is not let]
    limit: list[int] | None = None  # what is absorbed next must be evaluated before this position
    while (place := _last_operation(before)) is not None:
        last = before[place]
        if not isinstance(last, Let) or not _may_move(last, statement, counts, assigned):
            return
        position = _position(statement, last.local)
        if position is None or (limit is not None and position >= limit):
            return
        if not _fits(statement, last, position):
            return
        _replace(statement, last.local, last.value)
        statement.location = statement.location or last.location
        limit = position
        del before[place]


def _last_operation(before: Block) -> int | None:
    """The last statement whose place among the operations matters."""
    for index in range(len(before) - 1, -1, -1):
        statement = before[index]
        if not (isinstance(statement, Let) and (_is_free(statement.value) or _is_constant(statement.value))):
            return index
    return None


def _is_free(value: Expr) -> bool:
    """Whether the place of this step among the operations does not matter: numbers, and views of whole
    tensors."""
    match value:
        case Number() | Path():
            return True
        case Unsafe(Method(Var(), "partition_full_mut")) | Method(Var(), "partition"):
            return True
        case Call(function):
            return function.startswith("tiles_")
        case _:
            return False


def _is_constant(value: Expr) -> bool:
    match value:
        case Call("constant") | Call("broadcast_scalar", (Number(), *_)):
            return True
        case _:
            return False


def _combines(value: Expr) -> bool:
    return isinstance(value, Call) and value.function.startswith(_COMBINING)


def _may_move(let: Let, into: Statement, counts: Counter[Local], assigned: set[Local]) -> bool:
    if let.mutable or counts[let.local] != 1 or blocks(let) or _combines(let.value):
        return False
    if let.local.python and not _same_name(let, into):
        return False
    return not (isinstance(into, Assign) and into.local in assigned and _reads_of(let.value, into.local) > 1)


def _same_name(let: Let, into: Statement) -> bool:
    target = into.local if isinstance(into, Let | Assign) else None
    if isinstance(into, LetTuple):
        target = into.locals[0]
    return target is not None and target.hint == let.local.hint


def _reads_of(expression: Expr, local: Local) -> int:
    return sum(1 for p in subexpressions(expression) if isinstance(p, Var) and p.local is local)


def _fits(statement: Statement, let: Let, position: list[int]) -> bool:
    """Whether the value may stand there: its type must be known without the `let`, and the line stay
    readable."""
    if isinstance(let.value, Unsafe) and not isinstance(statement, Let | LetTuple | Assign | Do):
        return False
    root = expressions(statement)[position[0]]
    if _combines(root):
        return False
    if isinstance(statement, Macro) and isinstance(let.type, TileType):
        return False  # nothing tells cutile the types within
    if len(position) == 1:
        return (
            let.infers
            or isinstance(statement, Assign)
            or (isinstance(statement, Let) and not statement.infers)
        )
    parent = _at(root, position[1:-1])
    if _calls(let.value) and any(_is_opaque(_at(root, position[1:end])) for end in range(1, len(position))):
        return False
    if isinstance(parent, Reference) and not isinstance(let.value, Method):
        return False
    if not let.infers and not _gives_type(parent, position[-1]):
        return False
    if isinstance(parent, Method) and position[-1] == 0 and isinstance(let.value, Number):
        return False
    if isinstance(parent, Unsafe | Descriptor) or _is_opaque(parent):
        return False
    return _depth(root) + _depth(let.value) <= _DEPTH


def _is_opaque(expression: Expr) -> bool:
    return isinstance(expression, Call) and expression.function.startswith(_OPAQUE)


def _calls(expression: Expr) -> bool:
    return any(isinstance(part, Call | Method) for part in subexpressions(expression))


def _gives_type(parent: Expr, index: int) -> bool:
    """Whether cutile infers the type of this operand from its surroundings: conversions within these only."""
    match parent:
        case Method(name="store"):
            return index == 1
        case Call(function="exp" | "exp2" | "log" | "log2" | "sqrt" | "rsqrt" | "tanh" | "negf"):
            return index == 0
        case _:
            return False


def _depth(expression: Expr) -> int:
    match expression:
        case Var() | Path() | Number():
            return 0
        case Member() | Unsafe():
            return _depth(operands(expression)[0])
        case Binary() | Call() | Method():
            return 1 + max((_depth(o) for o in operands(expression)), default=0)
        case _:
            return max((_depth(o) for o in operands(expression)), default=0)


def _position(statement: Statement, local: Local) -> list[int] | None:
    """Where the statement reads the variable, as a path; paths compare in the order of evaluation."""
    for index, expression in enumerate(expressions(statement)):
        path = _path(expression, local)
        if path is not None:
            return [index, *path]
    return None


def _path(expression: Expr, local: Local) -> list[int] | None:
    if isinstance(expression, Var):
        return [] if expression.local is local else None
    for index, operand in enumerate(operands(expression)):
        path = _path(operand, local)
        if path is not None:
            return [index, *path]
    return None


def _at(expression: Expr, path: list[int]) -> Expr:
    for index in path:
        expression = operands(expression)[index]
    return expression


def _replace(statement: Statement, local: Local, value: Expr) -> None:
    set_expressions(statement, tuple(_substitute(e, local, value) for e in expressions(statement)))


def _substitute(expression: Expr, local: Local, value: Expr) -> Expr:
    if isinstance(expression, Var):
        return value if expression.local is local else expression
    new = tuple(_substitute(o, local, value) for o in operands(expression))
    return with_operands(expression, new)
