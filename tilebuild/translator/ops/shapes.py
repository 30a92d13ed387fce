"""Constants and what changes the shape of a tile."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tilebuild.tileir import tree as ir
from tilebuild.translator.constants import rust_name
from tilebuild.translator.emitter import Attributes, Emitter, Row
from tilebuild.translator.ops.spelling import (
    array_literal,
    as_tile,
    decimal,
    declare,
    let_tile,
    number,
    shape,
    shim_name,
    tile_text,
)
from tilebuild.translator.refusal import Refusal
from tilebuild.translator.rust.tree import ArrayOf, Call, Expr, Method, Number, Path, Unsafe
from tilebuild.translator.rust.types import PointerTileType, ScalarType, TileType, TokenType


def constant(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    value = attributes.any("value")
    attributes.any("bits")
    bits = op.attributes.get("bits")
    result = op.results[0]
    if isinstance(value, tuple):
        _listed(e, result, _flat(value))
        return
    assert isinstance(value, bool | int | float)
    element = e.element(result)
    literal = number(e, value, element)
    if literal is not None and e.is_scalar(result):
        e.bind(result, _by_name(e, result, value) or literal)
    elif literal is None and e.is_scalar(result) and _is_only_spread(e, result):
        # No number of this type can be written: the constant is made in the shape that it gets.
        e.deferred[result] = (value, bits if isinstance(bits, int) else None)
    elif literal is not None and not e.rung.literal:
        # Typed by its literal, so that it can stand where it is used.
        e.bind(result, Call("broadcast_scalar", (literal, shape(e.shape(result)))))
    else:
        _dense(e, result, value, bits if isinstance(bits, int) else None)


#: Operations whose Rust form takes a const generic like any other number.
_COUNTING = frozenset({"addi", "subi", "muli", "divi", "remi", "mini", "maxi"})


def _by_name(e: Emitter, value: ir.Value, number: bool | int | float) -> Expr | None:
    """The constant of the kernel that a number is, as far as it is a factor or a term."""
    name = e.constants.get(e.program.name(value), 0)
    known = e.element(value) == "i32" and name and name == number
    if known and all(u.name in _COUNTING for u in e.uses.get(value, [])):
        return Path(rust_name(e.program.name(value)))
    return None


#: A constant of more numbers than this makes no sense as a list of them.
_LONGEST = 64


def _listed(e: Emitter, result: ir.Value, values: list[bool | int | float]) -> None:
    """A constant of several numbers, joined from one tile for each: `constant` of cutile repeats a number.
    Only ahead of time it becomes a constant again."""
    e.ahead_of_time = "cutile 0.5.0 joins a constant of several numbers again at each launch"
    element = e.element(result)
    literals = [number(e, v, element) for v in values]
    if any(x is None for x in literals) or len(values) > _LONGEST or element == "bool":
        raise Refusal(
            f"a constant of {len(values)} numbers of {element} has no Rust form in cutile 0.5.0",
            "pass the numbers as an array and load them, or compute them from ct.arange",
        )
    tiles: list[Expr] = [Call("broadcast_scalar", (x, shape((1,)))) for x in literals if x is not None]
    while len(tiles) > 1:
        kind = TileType(element, (2 * len(values) // len(tiles),))
        pairs = zip(tiles[::2], tiles[1::2], strict=True)
        tiles = [e.temporary("numbers", kind, Call("cat", (a, b, Number("0", "i32")))) for a, b in pairs]
    whole = tiles[0]
    if len(e.shape(result)) > 1:
        whole = Method(whole, "reshape", (shape(e.shape(result)),))
    e.let(result, whole, "numbers")


def _flat(values: tuple[ir.AttributeValue, ...]) -> list[bool | int | float]:
    found: list[bool | int | float] = []
    for value in values:
        if isinstance(value, tuple):
            found += _flat(value)
        elif isinstance(value, bool | int | float):
            found.append(value)
    return found


def _is_only_spread(e: Emitter, value: ir.Value) -> bool:
    users = e.uses.get(value, [])
    return all(u.name == "reshape" and _only_broadcast(e, u.results[0]) for u in users)


def _dense(e: Emitter, result: ir.Value, value: bool | int | float, bits: int | None) -> None:
    """A constant tile. Only values that cutile 0.5.0 encodes rightly go through its public `constant`."""
    element = e.element(result)
    literal = number(e, value, element)
    if element in ("f16", "bf16") and value == 0 and not bits:
        literal = Path(f"{element}::ZERO")
    if element == "f16" and value == 1:
        literal = Path("f16::ONE")
    infinity = {float("inf"): "INFINITY", float("-inf"): "NEG_INFINITY"}.get(value)
    if element in ("f32", "f64") and infinity:
        literal = Path(f"{element}::{infinity}")
    elif element == "i64" and literal is None and isinstance(value, int):
        literal = Number(str(value), "i64")
    if element == "tf32":
        _rounded(e, result, value)
        return
    if literal is None and element in _BITS and bits is not None and (value != value or value == 0):
        _by_bits(e, result, bits)
        return
    # `constant(false, …)` encodes true, large unsigned values encode 0, `bf16::ONE` encodes 1.875 and bf16
    # infinity NaN: all silently.
    if literal is None or (element == "bool" and not value):
        _shim(e, result, value, bits)
        return
    let_tile(e, result, Call("constant", (literal, shape(e.shape(result)))), "constant")


def _rounded(e: Emitter, result: ir.Value, value: bool | int | float) -> None:
    """A constant of f32, converted: cutile 0.5.0 writes a tf32 constant in eight bytes, which none reads."""
    if not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0):
        raise Refusal(f"the tf32 constant {value} has no Rust form in cutile 0.5.0", "use float32 for it")
    kind = TileType("f32", e.shape(result))
    call = Call("constant", (Number(decimal(float(value), "f32"), "f32"), shape(e.shape(result))))
    let_tile(e, result, Call("ftof", (e.temporary("wide", kind, call), _NEAREST)), "constant")


_NEAREST = Path("rounding::NearestEven")


#: Integers with as many bits as a float, to write NaN and negative zero, for which there is no literal.
_BITS: Mapping[str, int] = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}


def _by_bits(e: Emitter, result: ir.Value, bits: int) -> None:
    width = _BITS[e.element(result)]
    signed = bits - (1 << width) if bits >> (width - 1) else bits
    kind = TileType(f"i{width}", e.shape(result))
    call = Call("constant", (Number(str(signed), f"i{width}"), shape(e.shape(result))))
    let_tile(e, result, Call("bitcast", (e.temporary("bits", kind, call),)), "constant")


def _shim(e: Emitter, result: ir.Value, value: bool | int | float, bits: int | None) -> None:
    let_tile(e, result, _declared(e, result, value, bits), "constant", infers=True)


def _declared(e: Emitter, like: ir.Value, value: bool | int | float, bits: int | None) -> Expr:
    """A constant of the type of `like`, by a declaration of the operation for this type."""
    argument, literal = _shim_argument(e.element(like), value, bits)
    name = shim_name("constant", [like], e)
    signature = f"(value: {argument}) -> {tile_text(e, like)}"
    declare(e, name, "constant", (), (), signature, ', attribute_params = ["value:dense"]')
    return Call(name, (literal,))


def _shim_argument(element: str, value: bool | int | float, bits: int | None) -> tuple[str, Expr]:
    if element == "bool":
        return "i32", Number(str(int(value)), "i32")
    if element.startswith("u") and isinstance(value, int):
        width = int(element[1:])
        positive = value % (1 << width)
        signed = positive - (1 << width) if positive >> (width - 1) else positive
        argument = "i64" if width == 64 else "i32"
        return argument, Number(str(signed), argument)
    if element.startswith("i") and isinstance(value, int):
        argument = "i64" if element == "i64" else "i32"
        return argument, Number(str(value), argument)
    finite = value == value and abs(value) != float("inf")
    if element in ("f16", "bf16") and abs(value) == float("inf"):
        return "f32", Path(f"f32::{'INFINITY' if value > 0 else 'NEG_INFINITY'}")
    if element in ("f16", "bf16") and finite and (value != 0 or not bits):
        return "f32", Number(decimal(float(value), "f32"), "f32")
    if element.startswith(("f8", "f4")) and bits is not None:
        return "i32", Number(str(bits), "i32")  # cutile reads the text of these as their bits
    raise Refusal(
        f"the {element} constant {value} has no Rust form in cutile 0.5.0",
        f"compute it: write the constant in float32 and convert it with astype to {element}",
    )


def zero(e: Emitter, value: ir.Value) -> Expr:
    """Some value of this type, for a variable that is assigned before it is read."""
    kind = e.rust_type(value)
    if isinstance(kind, TokenType):
        return e.root_token()
    if isinstance(kind, PointerTileType):
        raise Refusal("a pointer that a branch chooses has no Rust form", "access the array in each branch")
    element = e.element(value)
    literal = number(e, 0.0 if element in ("f32", "f64") else 0, element)
    if literal is None:
        return _zero_tile(e, value)
    if isinstance(kind, ScalarType):
        return literal
    return Call("broadcast_scalar", (literal, shape(e.shape(value))))


def _zero_tile(e: Emitter, value: ir.Value) -> Expr:
    """The same for element types without literals."""
    element, extents = e.element(value), shape(e.shape(value))
    if element in ("f16", "bf16"):
        call: Expr = Call("constant", (Path(f"{element}::ZERO"), extents))
    elif element == "tf32":
        wide = Call("constant", (Number("0.0", "f32"), extents))
        call = Call("ftof", (e.temporary("wide", TileType("f32", e.shape(value)), wide), _NEAREST))
    else:
        call = _declared(e, value, 0, 0)
    tile = e.temporary("zero", TileType(element, e.shape(value)), call)
    return Call("tile_to_scalar", (tile,)) if e.is_scalar(value) else tile


def iota(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    e.let(op.results[0], Call("iota", (shape(e.shape(op.results[0])),)), "lanes")


def reshape(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    source, result = op.operands[0], op.results[0]
    if source in e.deferred:
        e.deferred[result] = e.deferred[source]
        return
    if e.is_scalar(source) and _only_broadcast(e, result):
        # The scalar reaches its shape by `broadcast_scalar`, which is this reshape and the broadcast.
        e.bind(result, e.value(source))
        e.unshaped.add(result)
        return
    if e.is_scalar(source) and not e.rung.literal and set(e.shape(result)) == {1}:
        e.let(
            result, Call("broadcast_scalar", (e.value(source), shape(e.shape(result)))), "splat", infers=True
        )
        return
    if isinstance(e.tile(source).element, ir.Pointer) and _only_offset(e, source, result):
        e.spread_pointers[result] = source
        return
    if isinstance(e.tile(source).element, ir.Pointer):
        e.let(result, Method(e.pointer_tile(source), "reshape", (shape(e.shape(result)),)), "pointers")
        return
    receiver = as_tile(e, source)
    let_tile(e, result, Method(receiver, "reshape", (shape(e.shape(result)),)), "reshaped", infers=True)


def _only_offset(e: Emitter, source: ir.Value, result: ir.Value) -> bool:
    """Whether a pointer is repeated for nothing but offsets from it, which a helper does in one step."""
    if e.rung.literal or e.shape(source) or not _only_broadcast(e, result):
        return False
    spread = [u.results[0] for u in e.uses[result]]
    return all(u.name == "offset" for s in spread for u in e.uses.get(s, []))


def _only_broadcast(e: Emitter, value: ir.Value) -> bool:
    users = e.uses.get(value, [])
    return bool(users) and all(u.name == "broadcast" for u in users)


def broadcast(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    source, result = op.operands[0], op.results[0]
    extents = shape(e.shape(result))
    if source in e.spread_pointers:
        e.spread_pointers[result] = e.spread_pointers[source]
    elif source in e.deferred:
        _dense(e, result, *e.deferred[source])
    elif isinstance(e.tile(source).element, ir.Pointer):
        e.let(result, Method(e.pointer_tile(source), "broadcast", (extents,)), "pointers")
    elif e.is_scalar(source) or source in e.unshaped:
        e.let(result, Call("broadcast_scalar", (e.value(source), extents)), "splat", infers=True)
    else:
        e.let(result, Method(e.value(source), "broadcast", (extents,)), "spread", infers=True)


def permute(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    order = attributes.numbers("permutation")
    source, result = op.operands[0], op.results[0]
    if order == (1, 0):
        e.let(result, Method(e.value(source), "transpose", ()), "transposed", infers=True)
    else:
        e.let(result, Call("permute", (e.value(source), array_literal(order))), "permuted")


def cat(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    dim = Number(str(attributes.number("dim")), "i32")
    e.let(op.results[0], Call("cat", (*(e.value(v) for v in op.operands), dim)), "joined")


def extract(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    indices = ArrayOf(tuple(as_tile(e, v) for v in op.group("indices")))
    let_tile(e, op.results[0], Call("extract", (e.value(op.group("source")[0]), indices)), "part")


def insert(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    indices = ArrayOf(tuple(as_tile(e, v) for v in op.group("indices")))
    part = as_tile(e, op.group("source")[0])
    call = Call("insert", (part, e.value(op.group("destination")[0]), indices))
    e.let(op.results[0], Unsafe(call, "the index lies within the tile, as in the Python kernel."), "whole")


ROWS: Mapping[str, Row] = {
    "constant": constant,
    "iota": iota,
    "reshape": reshape,
    "broadcast": broadcast,
    "permute": permute,
    "cat": cat,
    "extract": extract,
    "insert": insert,
}
