"""Arithmetic on constants exactly as a device does it. Knows numbers and operation names, but no terms.

Integers are given and returned signed, `i1` as 0 or 1, floats as bits. None means: not folded, either
because the operation is not defined for these numbers or because its result is not known here to the last
bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from tilebuild.tileir import floats

_WIDTHS: Mapping[str, int] = {"i1": 1, "i4": 4, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


def width(element: str) -> int:
    """Bits of an element type; 0 for what is neither integer nor float."""
    return floats.FORMATS[element].width if floats.is_float(element) else _WIDTHS.get(element, 0)


def signed(value: int, element: str) -> int:
    """The number in range that a wrapped result is."""
    bits = width(element)
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


def unsigned(value: int, element: str) -> int:
    return value & ((1 << width(element)) - 1)


def binary(name: str, left: int, right: int, element: str, attribute: Callable[[str], object]) -> int | None:
    """`addi`, `cmpi`, … on integers of type `element`; `attribute` looks up signedness, rounding,
    predicate."""
    if element not in _WIDTHS:
        return None
    read = unsigned if attribute("signedness") == "unsigned" else signed
    a, b = read(left, element), read(right, element)
    if name == "cmpi":
        return int(_PREDICATES[str(attribute("predicate"))](a, b))
    if name in ("divi", "remi") and b == 0:
        return None
    if name in ("shli", "shri") and not 0 <= b < width(element):
        return None
    exact = _EXACT[name](a, b, str(attribute("rounding"))) if name in _EXACT else None
    if exact is None:
        return None
    result = signed(exact, element)
    # With a no-wrap promise an overflowing result is undefined: leave it to the device.
    return result if attribute("overflow") in (None, "none") or result == exact else None


def cast(name: str, value: int, source: str, target: str, attribute: Callable[[str], object]) -> int | None:
    """`exti`, `trunci`, `itof`, `ftof`, `bitcast` of a constant."""
    if name == "bitcast" and width(source) == width(target):
        raw = unsigned(value, source) if source in _WIDTHS else value
        return signed(raw, target) if target in _WIDTHS else raw
    if name in ("exti", "trunci") and attribute("overflow") in (None, "none"):
        return signed(unsigned(value, source) if attribute("signedness") == "unsigned" else value, target)
    if attribute("rounding") != "nearest_even" or not floats.is_float(target):
        return None
    if name == "itof":
        number = unsigned(value, source) if attribute("signedness") == "unsigned" else value
        return floats.bits_of_number(Fraction(abs(number)), target, number < 0)
    if name == "ftof" and floats.is_float(source):
        real = floats.number_of_bits(value, source)
        if math.isfinite(real) and not (real < 0 and not floats.FORMATS[target].signed):
            return floats.bits_of_number(Fraction(abs(real)), target, math.copysign(1, real) < 0)
    return None


def _divide(a: int, b: int, rounding: str) -> int:
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if rounding == "negative_inf":
        return a // b
    if rounding == "positive_inf":
        return -(-a // b)
    return quotient


_EXACT: Mapping[str, Callable[[int, int, str], int]] = {
    "addi": lambda a, b, _: a + b,
    "subi": lambda a, b, _: a - b,
    "muli": lambda a, b, _: a * b,
    "divi": _divide,
    "remi": lambda a, b, _: a - b * _divide(a, b, "zero"),
    "mini": lambda a, b, _: min(a, b),
    "maxi": lambda a, b, _: max(a, b),
    "andi": lambda a, b, _: a & b,
    "ori": lambda a, b, _: a | b,
    "xori": lambda a, b, _: a ^ b,
    "shli": lambda a, b, _: a << b,
    "shri": lambda a, b, _: a >> b,
}
_PREDICATES: Mapping[str, Callable[[int, int], bool]] = {
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less_than": lambda a, b: a < b,
    "less_than_or_equal": lambda a, b: a <= b,
    "greater_than": lambda a, b: a > b,
    "greater_than_or_equal": lambda a, b: a >= b,
}
