"""Loops, branches, and what only checks or orders: control flow of Tile IR. Knows no arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilebuild.interpreter import elements
from tilebuild.interpreter.frame import Frame, Handler, Refused, Signal, Undefined
from tilebuild.tileir.tree import Operation, Pointer

Outcome = Sequence[Any] | Signal


def _for(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Outcome:
    lower, upper, step = (frame.operand(operation, name) for name in ("lower", "upper", "step"))
    index_type = np.asarray(lower).dtype
    if operation.attributes.get("unsigned", False):
        lower, upper, step = (elements.unsigned(np.asarray(bound)) for bound in (lower, upper, step))
    if int(step) <= 0:
        raise Undefined(f"a for loop has the step {int(step)}")
    carried: tuple[Any, ...] = frame.operands(operation, "init")
    for index in range(int(lower), int(upper), int(step)):
        induction = np.array(index).astype(index_type)
        signal = frame.run(operation.regions[0], (induction, *carried))
        if signal.kind == "return":
            return signal
        carried = signal.values
        if signal.kind == "break":
            break
    return carried


def _loop(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Outcome:
    carried: tuple[Any, ...] = tuple(operands)
    while True:
        signal = frame.run(operation.regions[0], carried)
        if signal.kind == "return":
            return signal
        carried = signal.values
        if signal.kind == "break":
            return carried


def _if(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Outcome:
    taken = 0 if bool(operands[0]) else 1
    if taken >= len(operation.regions):
        return ()
    signal = frame.run(operation.regions[taken])
    return signal.values if signal.kind == "yield" else signal


def _assert(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Outcome:
    if not np.all(operands[0]):
        raise Undefined(f"the assertion {str(operation.attributes['message'])!r} fails")
    return ()


def _assume(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Outcome:
    """An assumption is a promise to the compiler; one that does not hold makes everything after it
    undefined."""
    value = np.asarray(operands[0])
    attributes = operation.attributes
    match attributes["predicate"]:
        case "div_by":
            divisor = int(str(attributes["divisor"]))
            holds = _divisible(value, divisor, attributes.get("every"), attributes.get("along"))
            fact = f"is divisible by {divisor}"
        case "bounded":
            lower, upper = attributes.get("lower"), attributes.get("upper")
            holds = (lower is None or bool(np.all(value >= lower))) and (
                upper is None or bool(np.all(value <= upper))
            )
            fact = (
                f"lies between {'-inf' if lower is None else lower} and {'inf' if upper is None else upper}"
            )
        case "same_elements":
            holds, fact = _same_elements(value, attributes["values"]), "is constant along groups"
        case other:
            raise Refused(f"the interpreter has no assumption {other!r}")
    if not holds and operation.results[0] not in frame.idle:
        what = "a pointer" if isinstance(frame.element(operation.results[0]), Pointer) else "a value"
        raise Undefined(f"an assumption does not hold: that {what} {fact}; it is {_sample(value)}")
    return (operands[0],)


def _divisible(value: Any, divisor: int, every: Any, along: Any) -> bool:
    if every is not None and along is not None:
        value = np.take(value, np.arange(0, value.shape[along], every), axis=along)
    return bool(np.all(value % divisor == 0))


def _same_elements(value: Any, groups: Any) -> bool:
    for axis, length in enumerate(groups):
        firsts = np.repeat(
            np.take(value, np.arange(0, value.shape[axis], length), axis=axis), length, axis=axis
        )
        if not np.array_equal(firsts, value):
            return False
    return True


def _sample(value: Any) -> str:
    return str(int(value)) if value.ndim == 0 else f"{int(value.reshape(-1)[0])}, …"


def _token(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Outcome:
    """Operations run one after another in program order, which is one of the orders that tokens allow."""
    return (None,) * len(operation.results)


def _block_id(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Outcome:
    return tuple(np.array(index, dtype=np.int32) for index in frame.block)


def _grid(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Outcome:
    return tuple(np.array(extent, dtype=np.int32) for extent in frame.grid)


CONTROL: Mapping[str, Handler] = {
    "for": _for,
    "loop": _loop,
    "if": _if,
    "assert": _assert,
    "assume": _assume,
    "get_tile_block_id": _block_id,
    "get_num_tile_blocks": _grid,
    "make_token": _token,
    "join_tokens": _token,
    "gdc_wait_tko": _token,
    "gdc_launch_dependents_tko": _token,
    "memory_fence_alias_tko": _token,
    "print_tko": _token,
}
