"""Conversions between element types."""

from __future__ import annotations

from collections.abc import Mapping

from tilebuild.tileir import tree as ir
from tilebuild.translator.emitter import Attributes, Emitter, Row
from tilebuild.translator.ops.spelling import (
    as_tile,
    check_sign,
    declare,
    let_tile,
    marker,
    shim_name,
    tile_text,
    with_sign,
)
from tilebuild.translator.refusal import Refusal
from tilebuild.translator.rust.tree import Call, Expr, Path


def _convert(e: Emitter, op: ir.Operation, function: str, source: Expr, element: str, *markers: str) -> None:
    """`let x: Tile<B, S> = function(source, markers…);`: the result type must be written down."""
    result = op.results[0]
    if not e.is_scalar(result):
        e.let(result, Call(function, (source, *map(Path, markers))), _word(op.name))
        return
    body = f"{function}({', '.join(['x', *markers])})"
    name = f"{_PREFIX[function]}_{element}_{e.element(result)}"
    e.helpers.scalar(name, f"`{function}` on scalars.", body, (element,), e.element(result))
    e.let(result, Call(name, (source,)), _word(op.name), infers=True)


#: Names of the helpers that convert scalars: `widen_i32_i64(x)`.
_PREFIX: Mapping[str, str] = {
    "exti": "widen",
    "itof": "to_float",
    "ftoi": "to_integer",
    "ftof": "to_float",
    "bitcast": "scalar_bitcast",
}


def _word(name: str) -> str:
    return {"exti": "wide", "trunci": "narrow", "bitcast": "bits"}.get(name, "converted")


def exti(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    source, element = with_sign(e, op.operands[0], attributes.word("signedness"))
    _convert(e, op, "exti", source, element)


def itof(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    source, element = with_sign(e, op.operands[0], attributes.word("signedness"))
    _convert(e, op, "itof", source, element, marker("rounding", attributes.word("rounding")))


def ftoi(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    check_sign(e, op, op.results[0], attributes.word("signedness"))
    if attributes.flag("saturating"):
        raise Refusal(
            "a saturating conversion to an integer has no Rust form in cutile 0.5.0",
            "clamp with ct.minimum and ct.maximum, then convert",
        )
    source = e.value(op.operands[0])
    _convert(
        e, op, "ftoi", source, e.element(op.operands[0]), marker("rounding", attributes.word("rounding"))
    )


def ftof(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    source = e.value(op.operands[0])
    _convert(
        e, op, "ftof", source, e.element(op.operands[0]), marker("rounding", attributes.word("rounding"))
    )


def bitcast(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    _convert(e, op, "bitcast", e.value(op.operands[0]), e.element(op.operands[0]))


def trunci(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    """A shim: the public `trunci(x, overflow::None)` misses its attribute in the byte code writer."""
    overflow = attributes.word("overflow", "none")
    value, result = op.operands[0], op.results[0]
    name = shim_name(op.name, [value, result], e) + ("" if overflow == "none" else f"_{overflow}")
    signature = f"(from: {tile_text(e, value)}) -> {tile_text(e, result)}"
    declare(e, name, op.name, ("from",), (f"overflow={overflow}",), signature)
    let_tile(e, result, Call(name, (as_tile(e, value),)), "narrow", infers=True)


def pack(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    e.let(op.results[0], Call(op.name, (e.value(op.operands[0]),)), "bytes")


def int_to_ptr(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    e.let(op.results[0], Call("int_to_ptr", (as_tile(e, op.operands[0]),)), "pointer")


def ptr_to_int(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    raise Refusal(
        "the address of a pointer as an integer has no Rust form", "compute with indices, not addresses"
    )


ROWS: Mapping[str, Row] = {
    "exti": exti,
    "trunci": trunci,
    "itof": itof,
    "ftoi": ftoi,
    "ftof": ftof,
    "bitcast": bitcast,
    "pack": pack,
    "unpack": pack,
    "int_to_ptr": int_to_ptr,
    "ptr_to_int": ptr_to_int,
}
