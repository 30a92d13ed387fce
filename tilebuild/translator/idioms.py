"""Shapes of several operations that one Python operator makes, and that one Rust function says better.

`a % b` of integers becomes seven operations (the result of `remi` is corrected to the sign of `b`); they
become `floor_mod(a, b)`, whose body is these operations again. Knows the shapes, not where they occur.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilebuild.tileir.tree import Entry, Operation, Value
from tilebuild.translator.program import uses


@dataclass(frozen=True)
class FloorMod:
    """`dividend % divisor` of Python. `parts` are the operations that go; the last, the `select`, stays as
    the call."""

    dividend: Value
    divisor: Value
    parts: tuple[Operation, ...]


def floor_mods(entry: Entry) -> Mapping[int, FloorMod]:
    """By the identity of the `select` that ends it."""
    makers = {result: o for o in entry.walk() for result in o.results}
    readers = uses(entry)
    constants = {o.results[0]: o.attributes["value"] for o in entry.walk() if o.name == "constant"}
    found: dict[int, FloorMod] = {}
    for operation in entry.walk():
        if operation.name == "select":
            match = _floor_mod(operation, makers, constants)
            if match is not None and _is_closed(match, operation, readers):
                found[id(operation)] = match
    return found


def _floor_mod(
    select: Operation, makers: Mapping[Value, Operation], constants: Mapping[Value, object]
) -> FloorMod | None:
    """select(andi(xori(lt(r, 0), lt(b, 0)), ne(r, 0)), addi(r, b), r) with r = remi(a, b), all signed."""

    def made(value: Value, name: str, **attributes: str) -> Operation | None:
        maker = makers.get(value)
        if maker is None or maker.name != name:
            return None
        return maker if all(maker.attributes.get(k) == v for k, v in attributes.items()) else None

    def against_zero(value: Value, predicate: str, left: Value) -> Operation | None:
        compare = made(value, "cmpi", predicate=predicate)
        if compare is None or compare.operands[0] != left or constants.get(compare.operands[1]) != 0:
            return None
        return compare if predicate == "not_equal" or compare.attributes["signedness"] == "signed" else None

    condition, corrected, remainder = select.operands
    rem = made(remainder, "remi", signedness="signed")
    add = made(corrected, "addi", overflow="none")
    both = made(condition, "andi")
    if rem is None or add is None or both is None or add.operands != (remainder, rem.operands[1]):
        return None
    differ = made(both.operands[0], "xori")
    nonzero = against_zero(both.operands[1], "not_equal", remainder)
    if differ is None or nonzero is None:
        return None
    divisor = rem.operands[1]
    negative = against_zero(differ.operands[0], "less_than", remainder)
    sign = against_zero(differ.operands[1], "less_than", divisor)
    if negative is None or (sign is None and not _is_known_sign(differ.operands[1], divisor, constants)):
        return None
    parts = (rem, negative, *([sign] if sign else []), differ, nonzero, both, add)
    return FloorMod(rem.operands[0], divisor, parts)


def _is_known_sign(value: Value, divisor: Value, constants: Mapping[Value, object]) -> bool:
    """Whether the value is the constant that Python folds `divisor < 0` to."""
    known = constants.get(divisor)
    return isinstance(known, int) and value in constants and bool(constants[value]) == (known < 0)


def _is_closed(match: FloorMod, select: Operation, readers: Mapping[Value, list[Operation]]) -> bool:
    """Whether nothing else reads what is made on the way."""
    own = {id(p) for p in match.parts} | {id(select)}
    return all(
        id(r) in own for part in match.parts for result in part.results for r in readers.get(result, [])
    )
