"""The grid expression language: text to a small tree, and its value. Knows no kernel and no BUILD file.

    cdiv(a.shape[0], TILE) * min(n, 4)

Integers, `+ - * // %`, `cdiv`, `min`, `max`, names of scalars and constants, `array.shape[i]` and
`array.strides[i]`. `//` and `%` are Python's (towards negative infinity); `cdiv` rounds up.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from tilebuild.diagnostics import did_you_mean

BinaryOperator: TypeAlias = Literal["+", "-", "*", "//", "%"]
Function: TypeAlias = Literal["cdiv", "min", "max"]
Property: TypeAlias = Literal["shape", "strides"]


@dataclass(frozen=True)
class Number:
    value: int


@dataclass(frozen=True)
class Name:
    """A scalar parameter or a constant of the kernel."""

    name: str


@dataclass(frozen=True)
class Extent:
    """`array.shape[axis]` or `array.strides[axis]`, in elements."""

    array: str
    property: Property
    axis: int


@dataclass(frozen=True)
class Binary:
    operator: BinaryOperator
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Call:
    function: Function
    arguments: tuple[Expression, ...]


Expression: TypeAlias = Number | Name | Extent | Binary | Call


@dataclass(frozen=True)
class ArrayFacts:
    """What a grid may ask of an array."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


Bindings: TypeAlias = Mapping[str, int | ArrayFacts]


class GridError(Exception):
    """What is wrong with an expression; `column` counts from 1 within its text, 0 where it is the whole."""

    def __init__(self, fact: str, column: int = 0, help: str = "") -> None:
        super().__init__(fact)
        self.fact = fact
        self.column = column
        self.help = help


_OPERATORS: Mapping[type[ast.operator], BinaryOperator] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_FUNCTIONS: Mapping[str, tuple[int, int]] = {"cdiv": (2, 2), "min": (2, 99), "max": (2, 99)}
_EVALUATE: Mapping[BinaryOperator, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}


def parse(text: str) -> Expression:
    """The tree of an expression. Raises `GridError`."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise GridError(f"cannot read the grid expression {text!r}: {error.msg}", error.offset or 0) from None
    return _convert(node)


def references(expression: Expression) -> Iterator[Name | Extent]:
    """Every parameter that the expression asks for, in order of appearance."""
    match expression:
        case Name() | Extent():
            yield expression
        case Binary(_, left, right):
            yield from references(left)
            yield from references(right)
        case Call(_, arguments):
            for argument in arguments:
                yield from references(argument)


def evaluate(expression: Expression, bindings: Bindings) -> int:
    """The value of an expression. Raises `GridError` for a missing name and a division by zero."""
    match expression:
        case Number(value):
            return value
        case Name(name):
            return _scalar(name, bindings)
        case Extent():
            return _extent(expression, bindings)
        case Binary(operator, left, right):
            divisor = evaluate(right, bindings)
            if operator in ("//", "%") and divisor == 0:
                raise GridError(f"division by zero in {text_of(expression)!r}")
            return _EVALUATE[operator](evaluate(left, bindings), divisor)
        case Call(function, arguments):
            values = [evaluate(argument, bindings) for argument in arguments]
            if function == "cdiv":
                if values[1] == 0:
                    raise GridError(f"division by zero in {text_of(expression)!r}")
                return -(-values[0] // values[1])
            return min(values) if function == "min" else max(values)


#: Blocks that CUDA launches along each axis at most ("maximum x-, y-, or z-dimension of a grid").
LIMITS = (2**31 - 1, 65535, 65535)


def evaluate_grid(texts: tuple[str, ...], bindings: Bindings) -> tuple[int, ...]:
    """The grid that formulas give. Raises `GridError` for one that no GPU launches."""
    grid = tuple(evaluate(parse(text), bindings) for text in texts)
    for text, extent, limit in zip(texts, grid, LIMITS, strict=False):
        if extent < 1:
            raise GridError(f"the grid expression {text!r} gives {extent}; a grid needs at least one block")
        if extent > limit:
            raise GridError(f"the grid expression {text!r} gives {extent}; the limit there is {limit} blocks")
    return grid


def text_of(expression: Expression) -> str:
    """The expression as text, fully parenthesised where operators nest."""
    match expression:
        case Number(value):
            return str(value)
        case Name(name):
            return name
        case Extent(array, property, axis):
            return f"{array}.{property}[{axis}]"
        case Binary(operator, left, right):
            sides = [f"({text_of(s)})" if isinstance(s, Binary) else text_of(s) for s in (left, right)]
            return f"{sides[0]} {operator} {sides[1]}"
        case Call(function, arguments):
            return f"{function}({', '.join(map(text_of, arguments))})"


def _convert(node: ast.expr) -> Expression:
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return Number(value)
        case ast.Name(id=name):
            return Name(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return Binary("-", Number(0), _convert(operand))
        case ast.BinOp(left=left, op=operator, right=right):
            if type(operator) not in _OPERATORS:
                help = "write // (rounds down) or cdiv (rounds up)" if isinstance(operator, ast.Div) else ""
                raise _error(
                    node, f"the operator of {ast.unparse(node)!r} is not part of grid expressions", help
                )
            return Binary(_OPERATORS[type(operator)], _convert(left), _convert(right))
        case ast.Subscript(
            value=ast.Attribute(value=ast.Name(id=array), attr=("shape" | "strides") as kind),
            slice=ast.Constant(value=int() as axis),
        ):
            return Extent(array, kind, axis)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _call(node, name, arguments)
    raise _error(
        node,
        f"{ast.unparse(node)!r} is not part of grid expressions",
        "integers, + - * // %, cdiv, min, max, names of parameters, array.shape[i], array.strides[i]",
    )


def _call(node: ast.expr, name: str, arguments: list[ast.expr]) -> Expression:
    if name not in _FUNCTIONS:
        raise _error(node, f"grid expressions have no function {name!r}", did_you_mean(name, _FUNCTIONS))
    least, most = _FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        raise _error(node, f"{name} takes {'two arguments' if most == 2 else 'two arguments or more'}")
    return Call(cast(Function, name), tuple(_convert(argument) for argument in arguments))


def _error(node: ast.expr, fact: str, help: str = "") -> GridError:
    return GridError(fact, node.col_offset + 1, help)


def _scalar(name: str, bindings: Bindings) -> int:
    value = _lookup(name, bindings)
    if isinstance(value, ArrayFacts):
        raise GridError(
            f"{name!r} is an array; a grid expression may use {name}.shape[i] or {name}.strides[i]"
        )
    return value


def _extent(expression: Extent, bindings: Bindings) -> int:
    value = _lookup(expression.array, bindings)
    if not isinstance(value, ArrayFacts):
        raise GridError(f"{expression.array!r} is not an array and has no {expression.property}")
    extents = value.shape if expression.property == "shape" else value.strides
    if expression.axis >= len(extents):
        raise GridError(
            f"{text_of(expression)} is out of range: {expression.array!r} has rank {len(extents)}"
        )
    return extents[expression.axis]


def _lookup(name: str, bindings: Bindings) -> int | ArrayFacts:
    try:
        return bindings[name]
    except KeyError:
        raise GridError(
            f"the kernel has no parameter {name!r} that a grid may use", help=did_you_mean(name, bindings)
        ) from None
