"""The disassembler's text of constants: `<f32: 1.0>`, `<i32: [[1, 2], [3, 4]]>`, `-5`. Knows no operation.

Floats are kept twice, as a number and as bits: bits tell -0.0 from 0.0 and one NaN from another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from tilebuild.tileir import floats
from tilebuild.tileir.lexer import Cursor
from tilebuild.tileir.tree import AttributeValue

#: One object for every NaN, so that attributes that hold it compare equal; `bits` tells NaNs apart.
NAN = math.nan

#: A number and its bits; for integers both are the number.
Number: TypeAlias = "tuple[int | float | bool, int]"


def read_constant(cursor: Cursor) -> dict[str, AttributeValue]:
    """The attributes `value` and, for floats, `bits`; tuples where the elements are written one by one."""
    cursor.expect("<")
    element = cursor.take()
    cursor.expect(":")
    content = _read(cursor, element)
    cursor.expect(">")
    attributes = {"value": _map(content, lambda number: number[0])}
    if floats.is_float(element):
        attributes["bits"] = _map(content, lambda number: number[1])
    return attributes


def read_number(cursor: Cursor, element: str) -> Number:
    if cursor.peek() in ("true", "false"):
        truth = cursor.boolean()
        return truth, int(truth)
    if not floats.is_float(element):
        integer = cursor.integer()
        return integer, integer
    try:
        bits = floats.bits_of_text(cursor.peek(), element)
    except ValueError:
        raise cursor.error(f"expected a number of type {element}, found {cursor.peek()!r}") from None
    cursor.take()
    number = floats.number_of_bits(bits, element)
    return (NAN if math.isnan(number) else number), bits


class _Rows(list["_Content"]):
    """A list in the text, as opposed to a `Number`, which is a tuple."""


_Content: TypeAlias = "Number | _Rows"


def _read(cursor: Cursor, element: str) -> _Content:
    if cursor.accept("["):
        return _Rows(cursor.separated(lambda: _read(cursor, element), "]"))
    return read_number(cursor, element)


def _map(content: _Content, part: Callable[[Number], int | float | bool]) -> AttributeValue:
    if isinstance(content, _Rows):
        return tuple(_map(row, part) for row in content)
    return part(content)
