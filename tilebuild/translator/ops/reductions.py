"""Reductions and scans. cutile 0.5.0 prints those with one operand and a standard combiner."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tilebuild.tileir import tree as ir
from tilebuild.translator.emitter import Attributes, Emitter, Row
from tilebuild.translator.ops.spelling import check_sign, let_tile
from tilebuild.translator.refusal import Refusal
from tilebuild.translator.rust.tree import Call, Number, Path

_COMBINERS: Mapping[str, str] = {
    "addf": "sum",
    "addi": "sum",
    "mulf": "prod",
    "muli": "prod",
    "maxf": "max",
    "maxi": "max",
    "minf": "min",
    "mini": "min",
}
#: Element types for which cutile 0.5.0 writes the identity of a reduction rightly.
_ELEMENTS = frozenset({"f16", "bf16", "f32", "f64", "i32", "i64", "u32", "u64"})
_WAY_OUT = "split the reduction into ct.sum, ct.prod, ct.max and ct.min of one tile each"


def _combiner(e: Emitter, op: ir.Operation) -> str:
    """sum, prod, max or min; refuses every other combiner, identity and flag."""
    body = op.regions[0]
    if len(op.operands) != 1 or len(body.operations) != 2:
        raise Refusal(
            f"a {op.name} with several operands or a combiner of its own has no Rust form yet", _WAY_OUT
        )
    combine, end = body.operations
    standard = combine.operands == body.arguments and end.operands == combine.results
    if combine.name not in _COMBINERS or not standard:
        raise Refusal(f"a {op.name} with {combine.name} has no Rust form yet", _WAY_OUT)
    word = _COMBINERS[combine.name]
    for name, value in combine.attributes.items():
        if name == "signedness":
            check_sign(e, op, op.operands[0], str(value))
        elif value not in ("none", "nearest_even", False):
            raise Refusal(
                f"a {op.name} whose {combine.name} has {name} = {value} has no Rust form yet", _WAY_OUT
            )
    element = e.element(op.operands[0])
    if element not in _ELEMENTS:
        raise Refusal(
            f"a {op.name} of {element} has no Rust form in cutile 0.5.0", "reduce in int32 or float32"
        )
    identities = op.attributes["identities"]
    assert isinstance(identities, tuple)
    if not _is_identity(identities[0], word, element):
        raise Refusal(f"a {op.name} with the identity {identities[0]} has no Rust form yet", _WAY_OUT)
    return word


def _is_identity(value: object, word: str, element: str) -> bool:
    assert isinstance(value, int | float)
    if word in ("sum", "prod"):
        return bool(value == (0 if word == "sum" else 1)) and math.copysign(1, value) > 0
    if element.startswith(("f", "bf")):
        return bool(value == (-math.inf if word == "max" else math.inf))
    bits = int(element[1:])
    low, high = (0, 2**bits - 1) if element.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    wanted = low if word == "max" else high
    return bool(int(value) % 2**bits == wanted % 2**bits)


def reduce(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    word = _combiner(e, op)
    for name in ("identities", "bits"):
        attributes.any(name)
    dim = Number(str(attributes.number("dim")), "i32")
    call = Call(f"reduce_{word}", (e.value(op.operands[0]), dim))
    let_tile(e, op.results[0], call, {"sum": "total", "prod": "product"}.get(word, word + "imum"))


def scan(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    word = _combiner(e, op)
    for name in ("identities", "bits"):
        attributes.any(name)
    reverse = attributes.flag("reverse")
    dim = attributes.number("dim")
    element = e.element(op.operands[0])
    if word != "sum" or dim != 0 or element not in ("f32", "i32"):
        # `scan_sum` ignores its axis and `scan` its identity, both silently.
        raise Refusal(
            f"a running {word} of {element} along axis {dim} has no Rust form in cutile 0.5.0",
            "use ct.cumsum along axis 0 in float32 or int32, with ct.permute around it",
        )
    zero = Number("0.0" if element == "f32" else "0", element)
    direction = Path(f"reverse::{'Reverse' if reverse else 'Forward'}")
    arguments = (e.value(op.operands[0]), Number(str(dim), "i32"), direction, zero)
    e.let(op.results[0], Call("scan_sum", arguments), "running", infers=True)


ROWS: Mapping[str, Row] = {"reduce": reduce, "scan": scan}
