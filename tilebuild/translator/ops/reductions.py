"""Reductions and scans.

Those of one operand with a standard combiner are functions of cutile 0.5.0. It cannot write the body of any
other; such a one becomes statements and a call, of which the driver makes the operation ahead of time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tilebuild.tileir import tree as ir
from tilebuild.tileir.tree import Scalar
from tilebuild.translator.emitter import Attributes, Emitter, Row
from tilebuild.translator.ops.spelling import hint, let_tile, number, shim_name, sign_of, tile_text
from tilebuild.translator.refusal import Refusal
from tilebuild.translator.rust.tree import Call, Expr, LetTuple, Number, Path, TupleOf, Var
from tilebuild.translator.rust.types import TileType, TupleType

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
_WORDS: Mapping[str, str] = {"reduce": "reduced", "scan": "running"}


def reduce(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    dim = attributes.number("dim")
    for name in ("identities", "bits"):
        attributes.any(name)
    word = _standard(e, op)
    if not word:
        _general(e, op, f"axis_{dim}", (f"dim={dim}",))
        return
    call = Call(f"reduce_{word}", (e.value(op.operands[0]), Number(str(dim), "i32")))
    let_tile(e, op.results[0], call, {"sum": "total", "prod": "product"}.get(word, word + "imum"))


def scan(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    dim, reverse = attributes.number("dim"), attributes.flag("reverse")
    for name in ("identities", "bits"):
        attributes.any(name)
    element = e.element(op.operands[0])
    # `scan_sum` ignores its axis and `scan` its identity, both silently.
    if _standard(e, op) != "sum" or dim != 0 or element not in ("f32", "i32"):
        words = f"axis_{dim}" + ("_reverse" if reverse else "")
        _general(e, op, words, (f"dim={dim}", f"reverse={'true' if reverse else 'false'}"))
        return
    zero = Number("0.0" if element == "f32" else "0", element)
    direction = Path(f"reverse::{'Reverse' if reverse else 'Forward'}")
    arguments = (e.value(op.operands[0]), Number(str(dim), "i32"), direction, zero)
    e.let(op.results[0], Call("scan_sum", arguments), "running", infers=True)


# --- one operand and a standard combiner ----------------------------------------------------------


def _standard(e: Emitter, op: ir.Operation) -> str:
    """sum, prod, max or min where cutile has a function for exactly this; else empty."""
    body = op.regions[0]
    if len(op.operands) != 1 or len(body.operations) != 2:
        return ""
    combine, end = body.operations
    word = _COMBINERS.get(combine.name, "")
    if combine.operands != body.arguments or end.operands != combine.results:
        return ""
    element = e.element(op.operands[0])
    signs = combine.attributes.get("signedness", sign_of(element))
    flags = [v for k, v in combine.attributes.items() if k != "signedness"]
    if signs != sign_of(element) or any(v not in ("none", "nearest_even", False) for v in flags):
        return ""
    identities = op.attributes["identities"]
    assert isinstance(identities, tuple)
    fits = word and element in _ELEMENTS and _is_identity(identities[0], word, element)
    return word if fits else ""


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


# --- any other ------------------------------------------------------------------------------------


def _general(e: Emitter, op: ir.Operation, words: str, named: tuple[str, ...]) -> None:
    """The combiner as statements on two elements of each operand, then a call that takes them, and what
    they become, beside the tiles. Only ahead of time the compiler makes a body of these statements."""
    e.ahead_of_time = "cutile 0.5.0 cannot compile a general reduction at a launch"
    body = op.regions[0]
    tiles = [e.named(v) for v in op.operands]
    for index, argument in enumerate(body.arguments):
        side = ("left", "right")[index % 2]
        word = f"{side}_{hint(e, op.operands[index // 2])}" if len(tiles) > 1 else side
        e.let(argument, Call(_element(e, e.element(argument)), ()), word, infers=True)
    e.operations(body.operations[:-1])
    results = body.operations[-1].operands
    name = _declare(e, op, words, named)
    groups = (tiles, [e.value(a) for a in body.arguments], [e.value(v) for v in results])
    call = Call(name, tuple(_group(g) for g in groups))
    if len(tiles) == 1:
        let_tile(e, op.results[0], call, _WORDS[op.name])
    else:
        _let_tiles(e, op, call)


def _group(items: Sequence[Expr]) -> Expr:
    return items[0] if len(items) == 1 else TupleOf(tuple(items))


def _let_tiles(e: Emitter, op: ir.Operation, call: Expr) -> None:
    locals_ = tuple(e.local(r, _WORDS[op.name]) for r in op.results)
    kinds = tuple(TileType(e.element(r), e.shape(r)) for r in op.results)
    e.emit(LetTuple(locals_, TupleType(kinds), call))
    for result, local in zip(op.results, locals_, strict=True):
        if e.is_scalar(result):
            e.let(result, Call("tile_to_scalar", (Var(local),)), _WORDS[op.name])
        else:
            e.bind(result, Var(local))


def _element(e: Emitter, element: str) -> str:
    """A function that gives an element for a combiner to be written on; its name."""
    literal = f"{element}::ZERO"
    match number(e, 0.0 if element in ("f32", "f64") else 0, element):
        case Number(text, suffix):
            literal = text + suffix
        case Path():
            literal = "true"  # any will do, and `false` is encoded as true
        case _ if element not in ("f16", "bf16"):
            raise Refusal(
                f"a combiner of {element} has no Rust form in cutile 0.5.0", "convert with astype before"
            )
    return e.helpers.add(
        f"element_{element}",
        f"""
/// An element for a combiner to be written on. The compiler puts those of the tiles in its place.
fn element_{element}() -> {element} {{
    let value: Tile<{element}, {{ [] }}> = constant({literal}, shape![]);
    tile_to_scalar(value)
}}
""",
    )


def _declare(e: Emitter, op: ir.Operation, words: str, named: tuple[str, ...]) -> str:
    """The operation for exactly these types, axis and identities; its name."""
    codes, identities = zip(*(_identity(e, op, i) for i in range(len(op.operands))), strict=True)
    name = "_".join([shim_name(f"{op.name}_with", op.operands, e), words, "from", *codes])
    elements = [e.element(a) for a in op.regions[0].arguments]
    signature = (
        f"(tiles: {_types([tile_text(e, v) for v in op.operands])}, elements: {_types(elements)}, "
        f"combined: {_types(elements[::2])}) -> {_types([tile_text(e, r) for r in op.results])}"
    )
    attributes = ", ".join(f'"{n}"' for n in (*named, f"identities=[{', '.join(identities)}]"))
    params = 'params = ["tiles", "elements", "combined"]'
    return e.helpers.add(
        name,
        f"""
/// A general `{op.name}`: the statements that make `combined` of `elements` are its combiner. cutile 0.5.0
/// compiles it ahead of time only.
#[allow(unused_variables)]
#[cuda_tile::op(name = "{op.name}", {params}, named_attributes = [{attributes}], has_variadic_params = true)]
pub fn {name}{signature} {{
    unreachable!()
}}
""",
    )


def _types(types: Sequence[str]) -> str:
    return types[0] if len(types) == 1 else f"({', '.join(types)})"


def _identity(e: Emitter, op: ir.Operation, index: int) -> tuple[str, str]:
    """The bits of an identity as a word and as cutile reads them: decimals would be read as other numbers."""
    bits = op.attributes["bits"]
    assert isinstance(bits, tuple)
    code = bits[index]
    assert isinstance(code, int)
    kind = e.tile(op.operands[index]).element
    assert isinstance(kind, Scalar)
    width = int(kind.name.lstrip("ibf"))
    text = f"{code % (1 << width):x}"
    return text, f"0x{text} : {kind.name}"


ROWS: Mapping[str, Row] = {"reduce": reduce, "scan": scan}
