"""Pointers, the loads, stores and atomics that go through them, and the tokens that order all accesses."""

from __future__ import annotations

from collections.abc import Mapping

from tilebuild.tileir import tree as ir
from tilebuild.translator import pointer_helpers as texts
from tilebuild.translator.emitter import Attributes, Emitter, Row
from tilebuild.translator.ops.spelling import as_tile, marker, shape
from tilebuild.translator.ops.views import mode
from tilebuild.translator.refusal import Refusal
from tilebuild.translator.rust.tree import (
    ArrayOf,
    Call,
    Expr,
    LetTuple,
    Local,
    Method,
    Path,
    Reference,
    Unsafe,
    Var,
)
from tilebuild.translator.rust.types import TileType, TokenType, TupleType

_STORE = "the mask admits only elements of the array that no other block accesses, as in the Python kernel."
_LOAD = "the mask admits only elements of the array, as in the Python kernel."
_FACT = "the launch guarantees it."


def offset(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    pointer, by = op.operands
    base = e.spread_pointers.get(pointer)
    if base is None:
        e.let(op.results[0], Method(e.pointer_tile(pointer), "offset_tile", (as_tile(e, by),)), "pointers")
        return
    extents = e.shape(by)
    call = Call(texts.pointers(e.helpers, len(extents)), (e.pointer_tile(base), e.value(by), shape(extents)))
    e.let(op.results[0], call, "pointers")


def assume(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    value, result = op.operands[0], op.results[0]
    if result in e.lifted.root:
        for name in ("predicate", "divisor", "lower"):
            attributes.any(name)
        if e.is_bound(value):
            e.bind(result, e.value(value))
        return
    function = _assumption(attributes)
    operand = e.value(value)
    if isinstance(e.tile(value).element, ir.Pointer):
        operand = e.pointer_tile(value)
    e.let(result, Unsafe(Call(function, (operand,)), _FACT), "assumed")


def _assumption(attributes: Attributes) -> str:
    predicate = attributes.word("predicate")
    if predicate == "div_by":
        divisor = attributes.number("divisor")
        return f"assume_div_by::<_, {divisor}>"
    if predicate == "bounded":
        lower, upper = attributes.any("lower"), attributes.any("upper")
        if upper is None:
            return f"assume_bounds_lower::<_, {lower}>"
        if lower is None:
            return f"assume_bounds_upper::<_, {upper}>"
        return f"assume_bounds::<_, {lower}, {upper}>"
    raise Refusal(f"the assumption {predicate} has no Rust form", "leave the assumption out")


# --- loads and stores -----------------------------------------------------------------------------


class _Order:
    def __init__(self, e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
        ordering = attributes.word("memory_ordering")
        scope = attributes.word("memory_scope")
        self.ordering = Path(marker("ordering", ordering))
        self.scope: Expr = Path("None::<scope::TileBlock>")
        if scope:
            self.scope = Call("Some", (Path(marker("scope", scope)),))
        hints = e.hints(attributes.any("optimization_hints"))
        self.latency = Path(f"Latency::<{int(hints.pop('latency', 0))}>")
        if hints:
            raise Refusal(
                f"{op.name} with the hints {', '.join(hints)} has no Rust form", "leave these hints out"
            )

    @property
    def plain(self) -> bool:
        return (self.ordering.text, self.latency.text) == ("ordering::Weak", "Latency::<0>") and isinstance(
            self.scope, Path
        )


def some(e: Emitter, values: tuple[ir.Value, ...]) -> Expr:
    """`Some(x)` of an optional operand, or `None`. cutile infers no types inside of `Some`: what stands
    there has a name."""
    return Call("Some", (_operand(e, values[0]),)) if values else Path("None")


def _operand(e: Emitter, value: ir.Value) -> Expr:
    """The value as a tile with a name."""
    return as_tile(e, value) if e.is_scalar(value) else e.named(value)


def some_token(e: Emitter, values: tuple[ir.Value, ...]) -> Expr:
    return Call("Some", (e.value(values[0]),)) if values else Path("None")


def load_ptr_tko(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    order = _Order(e, op, attributes)
    (source,) = op.group("source")
    tile, token = op.results
    padding = op.group("padding_value")
    if order.plain and op.group("mask") and padding and op.group("token") and _gather(e, op):
        return
    mask, waiting = some(e, op.group("mask")), some_token(e, op.group("token"))
    function = "load_ptr_tko"
    fill: Expr = Path("None")
    if padding:
        function = texts.padded_load(e.helpers, len(e.shape(tile)))
        fill = some(e, padding)
    arguments = (e.pointer_tile(source), order.ordering, order.scope, mask, fill, waiting, order.latency)
    call = Unsafe(Call(function, arguments), _LOAD)
    if e.is_scalar(tile):
        _scalar_load(e, tile, token, call)
    else:
        e.let_pair(tile, token, call, "gathered", "loaded")


def _gather(e: Emitter, op: ir.Operation) -> bool:
    """A load under a mask as a call of a helper; false where there is none."""
    tile, token = op.results
    ordered = token in e.uses
    groups = ("source", "mask", "padding_value", "token")
    pointer, mask, padding, waiting = (op.group(g)[0] for g in groups)
    if e.is_scalar(tile):
        if ordered:
            return False
        arguments = (e.pointer_tile(pointer), e.value(mask), e.value(padding), e.value(waiting))
        call = Unsafe(Call(texts.load_at(e.helpers, e.element(tile)), arguments), _LOAD)
        e.let(tile, call, "gathered", infers=True)
        return True
    function = texts.gather(e.helpers, len(e.shape(tile)), ordered=ordered)
    arguments = (e.pointer_tile(pointer), e.named(mask), e.named(padding), e.value(waiting))
    call = Unsafe(Call(function, arguments), _LOAD)
    if ordered:
        e.let_pair(tile, token, call, "gathered", "loaded")
    else:
        e.let(tile, call, "gathered")
    return True


def _scalar_load(e: Emitter, tile: ir.Value, token: ir.Value, call: Expr) -> None:

    value = Local("gathered_tile")
    loaded = e.local(token, "loaded") if token in e.uses else None
    kinds = TupleType((TileType(e.element(tile), ()), TokenType()))
    e.emit(LetTuple((value, loaded), kinds, call))
    if loaded is not None:
        e.bind(token, Var(loaded))
    e.let(tile, Call("tile_to_scalar", (Var(value),)), "gathered")


def store_ptr_tko(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    order = _Order(e, op, attributes)
    (destination,) = op.group("destination")
    if order.plain and op.group("mask") and op.group("token") and e.shape(destination):
        groups = ("value", "mask")
        value, mask = (e.named(op.group(g)[0]) for g in groups)
        function = texts.scatter(e.helpers, len(e.shape(destination)))
        call = Call(function, (e.pointer_tile(destination), value, mask, e.value(op.group("token")[0])))
        let_token(e, op.results[0], Unsafe(call, _STORE), "stored")
        return
    arguments = (
        e.pointer_tile(destination),
        _operand(e, op.group("value")[0]),
        order.ordering,
        order.scope,
        some(e, op.group("mask")),
        some_token(e, op.group("token")),
        order.latency,
    )
    let_token(e, op.results[0], Unsafe(Call("store_ptr_tko", arguments), _LOAD), "stored")


def let_token(e: Emitter, token: ir.Value, call: Expr, fallback: str) -> None:
    if token in e.uses:
        e.let(token, call, fallback)
    else:
        e.emit(LetTuple((None,), TokenType(), call))


def atomic_rmw_tko(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    arguments = (
        e.pointer_tile(op.group("pointers")[0]),
        _operand(e, op.group("arg")[0]),
        Path(mode(attributes.word("mode"))),
        Path(marker("ordering", attributes.word("memory_ordering"))),
        Path(marker("scope", attributes.word("memory_scope"))),
        some(e, op.group("mask")),
        some_token(e, op.group("token")),
    )
    _atomic(e, op, Call("atomic_rmw_tko", arguments))


def atomic_cas_tko(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    arguments = (
        e.pointer_tile(op.group("pointers")[0]),
        _operand(e, op.group("cmp")[0]),
        _operand(e, op.group("val")[0]),
        Path(marker("ordering", attributes.word("memory_ordering"))),
        Path(marker("scope", attributes.word("memory_scope"))),
        some(e, op.group("mask")),
        some_token(e, op.group("token")),
    )
    _atomic(e, op, Call("atomic_cas_tko", arguments))


def _atomic(e: Emitter, op: ir.Operation, call: Expr) -> None:
    tile, token = op.results
    unsafe = Unsafe(call, _LOAD)
    if e.is_scalar(tile):
        _scalar_load(e, tile, token, unsafe)
    else:
        e.let_pair(tile, token, unsafe, "before", "updated")


# --- tokens ---------------------------------------------------------------------------------------


def make_token(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    # All of them stand for the start of the kernel, which the function names once.
    e.bind(op.results[0], e.root_token())


def join_tokens(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    tokens = Reference(ArrayOf(tuple(e.value(v) for v in op.operands)))
    e.let(op.results[0], Call("join_tokens", (tokens,)), "joined")


def _gdc(function: str) -> Row:
    def row(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
        call = Call(function, (some_token(e, op.group("token")),))
        reason = "programmatic dependent launch waits and signals as in the Python kernel."
        let_token(e, op.results[0], Unsafe(call, reason), "signalled")

    return row


ROWS: Mapping[str, Row] = {
    "offset": offset,
    "assume": assume,
    "load_ptr_tko": load_ptr_tko,
    "store_ptr_tko": store_ptr_tko,
    "atomic_rmw_tko": atomic_rmw_tko,
    "atomic_cas_tko": atomic_cas_tko,
    "make_token": make_token,
    "join_tokens": join_tokens,
    "gdc_wait_tko": _gdc("gdc_wait_tko"),
    "gdc_launch_dependents_tko": _gdc("gdc_launch_dependents_tko"),
}
