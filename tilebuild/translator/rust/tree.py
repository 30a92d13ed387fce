"""The part of Rust that kernels are written in, as data. Knows neither text nor Tile IR.

A `Local` is a variable by identity: its name is chosen last, when it is known which variables remain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from tilebuild.tileir.tree import Location
from tilebuild.translator.rust.types import RustType


@dataclass(eq=False)
class Local:
    """A variable. `hint` is the name it would like; `python` says that the hint is a variable of the Python
    source."""

    hint: str
    python: bool = False
    name: str = ""
    prefix: str = ""

    def __repr__(self) -> str:
        return f"Local({self.name or self.hint})"


# --- expressions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Var:
    local: Local


@dataclass(frozen=True)
class Path:
    """A name that is no local variable: a marker value, a type path, `true`."""

    text: str


@dataclass(frozen=True)
class Number:
    """A literal. `suffix` is its type, printed where the context does not give it."""

    text: str
    suffix: str


@dataclass(frozen=True)
class Call:
    function: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True)
class Method:
    receiver: Expr
    name: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True)
class Binary:
    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Member:
    """`value.0`, `value[0]`."""

    value: Expr
    index: int
    bracket: bool = False


@dataclass(frozen=True)
class ArrayOf:
    items: tuple[Expr, ...]


@dataclass(frozen=True)
class TupleOf:
    items: tuple[Expr, ...]


@dataclass(frozen=True)
class Reference:
    value: Expr


@dataclass(frozen=True)
class Cast:
    value: Expr
    type: str


@dataclass(frozen=True)
class Unsafe:
    """An unsafe expression with the reason why it is sound."""

    value: Expr
    reason: str


@dataclass(frozen=True)
class Descriptor:
    """`Shape::<{ [-1, 8] }> { dims: &[n] }`: lengths or strides, the run-time ones as values."""

    type: str
    items: tuple[Expr, ...]


@dataclass(frozen=True)
class IfValue:
    condition: Expr
    then: Block
    then_value: Expr
    otherwise: Block
    otherwise_value: Expr


Expr: TypeAlias = (
    Var
    | Path
    | Number
    | Call
    | Method
    | Binary
    | Member
    | ArrayOf
    | TupleOf
    | Reference
    | Cast
    | Unsafe
    | Descriptor
    | IfValue
)


# --- statements -----------------------------------------------------------------------------------


@dataclass
class Let:
    """`let x: T = value;`. With `infers` the type follows from the value, so that the value may stand
    elsewhere."""

    local: Local
    type: RustType
    value: Expr
    mutable: bool = False
    infers: bool = False
    unread: bool = False  # the value is there because cutile wants one; it is assigned before it is read
    location: Location | None = None


@dataclass
class LetTuple:
    """`let (x, token): (T, Token) = value;`; a local that is None is `_`."""

    locals: tuple[Local | None, ...]
    type: RustType
    value: Expr
    location: Location | None = None


@dataclass
class Assign:
    local: Local
    value: Expr
    location: Location | None = None


@dataclass
class Do:
    """An expression for its effect."""

    value: Expr
    location: Location | None = None


@dataclass
class For:
    local: Local | None
    start: Expr
    stop: Expr
    step: Expr | None
    body: Block
    location: Location | None = None


@dataclass
class While:
    condition: Expr
    body: Block
    location: Location | None = None


@dataclass
class Loop:
    body: Block
    location: Location | None = None


@dataclass
class If:
    condition: Expr
    then: Block
    otherwise: Block
    location: Location | None = None


@dataclass
class Jump:
    """`break;`, `continue;`, `return;`"""

    word: str
    location: Location | None = None


@dataclass
class Macro:
    """`cuda_tile_assert!(…);`"""

    name: str
    arguments: tuple[Expr, ...]
    location: Location | None = None


@dataclass
class Comment:
    """`// text`, a comment of the Python source."""

    text: str
    location: Location | None = None


Statement: TypeAlias = Let | LetTuple | Assign | Do | For | While | Loop | If | Jump | Macro | Comment
Block: TypeAlias = list[Statement]


@dataclass
class Parameter:
    local: Local
    type: RustType


@dataclass
class Function:
    """A kernel entry. `attributes` is what stands between the parentheses of `#[cutile::entry(…)]`."""

    name: str
    parameters: list[Parameter]
    body: Block
    attributes: tuple[str, ...] = ()
    docs: tuple[str, ...] = ()
    allows: tuple[str, ...] = ()
    safety: tuple[str, ...] = ()
    unsafe: bool = True


# --- walking --------------------------------------------------------------------------------------


def operands(expression: Expr) -> tuple[Expr, ...]:
    """The sub-expressions in the order in which they are evaluated; those of nested blocks are not among
    them."""
    match expression:
        case Var() | Path() | Number():
            return ()
        case Call(arguments=items) | ArrayOf(items) | TupleOf(items) | Descriptor(items=items):
            return items
        case Method():
            return (expression.receiver, *expression.arguments)
        case Binary():
            return (expression.left, expression.right)
        case IfValue():
            return (expression.condition,)
        case Member() | Reference() | Cast() | Unsafe():
            return (expression.value,)


def with_operands(expression: Expr, new: tuple[Expr, ...]) -> Expr:
    """The same expression over other operands."""
    match expression:
        case Var() | Path() | Number():
            return expression
        case Call():
            return replace(expression, arguments=new)
        case ArrayOf() | TupleOf() | Descriptor():
            return replace(expression, items=new)
        case Method():
            return replace(expression, receiver=new[0], arguments=new[1:])
        case Binary():
            return replace(expression, left=new[0], right=new[1])
        case IfValue():
            return replace(expression, condition=new[0])
        case Member() | Reference() | Cast() | Unsafe():
            return replace(expression, value=new[0])


def expressions(statement: Statement) -> tuple[Expr, ...]:
    """The expressions that a statement evaluates itself, in order; those of its blocks are not among them."""
    match statement:
        case Let() | LetTuple() | Assign() | Do():
            return (statement.value,)
        case For():
            return (statement.start, statement.stop, *([statement.step] if statement.step else []))
        case If() | While():
            return (statement.condition,)
        case Macro():
            return statement.arguments
        case Loop() | Jump() | Comment():
            return ()


def set_expressions(statement: Statement, new: tuple[Expr, ...]) -> None:
    match statement:
        case Let() | LetTuple() | Assign() | Do():
            (statement.value,) = new
        case For():
            statement.start, statement.stop = new[:2]
            statement.step = new[2] if len(new) > 2 else None
        case If() | While():
            (statement.condition,) = new
        case Macro():
            statement.arguments = new
        case Loop() | Jump() | Comment():
            pass


def blocks(statement: Statement) -> tuple[Block, ...]:
    """The blocks of a statement, those of an `if` in value form among them."""
    match statement:
        case For() | While() | Loop():
            return (statement.body,)
        case If():
            return (statement.then, statement.otherwise)
        case Let(value=IfValue() as value) | Assign(value=IfValue() as value):
            return (value.then, value.otherwise)
        case _:
            return ()


def walk(block: Block) -> Iterator[Statement]:
    """All statements in program order, a statement before what its blocks hold."""
    for statement in block:
        yield statement
        for inner in blocks(statement):
            yield from walk(inner)


def subexpressions(expression: Expr) -> Iterator[Expr]:
    """The expression and all it contains, outside of nested statements."""
    yield expression
    for operand in operands(expression):
        yield from subexpressions(operand)
    if isinstance(expression, IfValue):
        yield from subexpressions(expression.then_value)
        yield from subexpressions(expression.otherwise_value)


def reads(statement: Statement) -> Iterator[Local]:
    """The variables that a statement reads itself."""
    for expression in expressions(statement):
        for part in subexpressions(expression):
            if isinstance(part, Var):
                yield part.local


def defined(statement: Statement) -> tuple[Local, ...]:
    match statement:
        case Let():
            return (statement.local,)
        case LetTuple():
            return tuple(local for local in statement.locals if local is not None)
        case For():
            return (statement.local,) if statement.local else ()
        case _:
            return ()
