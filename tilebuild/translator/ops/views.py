"""Views of memory, and the loads and stores that go through them."""

from __future__ import annotations

from collections.abc import Mapping

from tilebuild.tileir import tree as ir
from tilebuild.translator.elements import RUST_OF_DTYPE
from tilebuild.translator.emitter import Attributes, Emitter, Row
from tilebuild.translator.lift import Array
from tilebuild.translator.ops.spelling import (
    array_literal,
    as_tile,
    declare,
    hint,
    marker,
    shape,
    sign_of,
    with_sign,
)
from tilebuild.translator.refusal import Refusal
from tilebuild.translator.rust.tree import (
    ArrayOf,
    Call,
    Descriptor,
    Do,
    Expr,
    Let,
    LetTuple,
    Local,
    Member,
    Method,
    Number,
    Path,
    Reference,
    TupleOf,
    Unsafe,
    Var,
)
from tilebuild.translator.rust.types import (
    ArrayType,
    GatherScatterViewType,
    PartitionType,
    ScalarType,
    StridedViewType,
    TensorType,
    TokenType,
    TupleType,
    shape_generic,
)

_OWN_VIEW = "the view covers the memory of the array that the caller passed."
_LOAD = "elements outside the array are not read, and the token orders the load as in the Python kernel."
_STORE = "elements outside the array are not written, and the token orders the store as in the Python kernel."
_ATOMIC = (
    "elements outside the array are not touched, and the token orders the access as in the Python kernel."
)


def dims(extents: tuple[int | None, ...]) -> tuple[int, ...]:
    return tuple(-1 if n is None else n for n in extents)


def make_tensor_view(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    result = op.results[0]
    array = e.lifted.views.get(result)
    tensor = e.tensor(array) if array is not None else None
    if tensor is not None:
        e.bind(result, Var(tensor))
        return
    view = e.type(result)
    assert isinstance(view, ir.TensorViewType)
    name = f"{array.name}_view" if array else e.program.name(result) or "view"
    lengths = _descriptor(e, "Shape", f"{name}_shape", dims(view.shape), op.group("shape"))
    strides = _descriptor(e, "Array", f"{name}_strides", dims(view.strides), op.group("strides"))
    base = e.pointer_tile(op.group("base")[0])
    call = Call("make_tensor_view", (base, lengths, strides, e.root_token()))
    kind = TensorType(e.element(result), dims(view.shape))
    e.bind(result, e.temporary(name, kind, Unsafe(call, _OWN_VIEW)))


def _descriptor(
    e: Emitter, kind: str, name: str, extents: tuple[int, ...], values: tuple[ir.Value, ...]
) -> Expr:
    generic = shape_generic(extents)
    items = tuple(_extent(e, v, name) for v in values)
    return e.temporary(name, ArrayType(f"{kind}<{generic}>"), Descriptor(f"{kind}::<{generic}>", items))


def _extent(e: Emitter, value: ir.Value, name: str) -> Expr:
    """A length or stride. rustc wants an i32 there, while cutile keeps the value that it is given, of
    either width."""
    if e.element(value) == "i32":
        return e.value(value)
    tile = as_tile(e, value)
    return e.temporary(f"{name}_{hint(e, value)}", ScalarType("i32"), Call("tile_to_scalar", (tile,)))


# --- tile views -----------------------------------------------------------------------------------


def make_partition_view(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    result = op.results[0]
    view = e.type(result)
    assert isinstance(view, ir.PartitionViewType)
    array = e.lifted.behind.get(result)
    users = e.uses.get(result, [])
    stored = any(u.name in ("store_view_tko", "atomic_red_view_tko") for u in users)
    plain = array is not None and array in e.implicit
    if plain and stored:
        if e.rung.mutable:
            e.bind(result, e.value(op.operands[0]))  # an output holds just the tile of its block
        else:
            e.bind(result, _mutable_view(e, op, view))
        return
    padding = e.padding_for(op)
    key = (e.value(op.operands[0]), shape(view.tile), view.dim_map, padding)
    known = e.known_view(key)
    if known is None:
        known = _partition(e, op, view, padding)
        e.scopes[-1].views[key] = known
    e.bind(result, known)


def _partition(e: Emitter, op: ir.Operation, view: ir.PartitionViewType, padding: str) -> Expr:
    tensor = op.operands[0]
    kind = PartitionType(e.element(tensor), view.tile)
    name = f"{e.view_name(tensor)}_tiles"
    identity = view.dim_map == tuple(range(len(view.tile)))
    padding_marker = marker("padding", padding)
    reference = _reference(e, tensor)
    extents = shape(view.tile)
    if not identity:
        arguments = (reference, extents, Path(padding_marker), array_literal(view.dim_map), e.root_token())
        return e.temporary(name, kind, Unsafe(Call("make_partition_view", arguments), _OWN_VIEW))
    if e.rung.mutable and padding not in ("zero", ""):
        raise Refusal(
            f"a view whose padding is {padding} has no safe Rust form in cutile 0.5.0",
            "load with padding_mode=ct.PaddingMode.ZERO",
        )
    if (padding == "zero" and e.rung.tensors) or e.rung.mutable:
        # The safe view pads with zeros, also where Python leaves the padding open.
        call: Expr = Method(e.value(tensor), "partition", (extents,))
    else:
        call = Call(e.helpers.tiles(len(view.tile), padding_marker.rpartition("::")[2]), (reference, extents))
    return e.temporary(name, kind, call, infers=True)


def _reference(e: Emitter, tensor: ir.Value) -> Expr:
    """A tensor as an argument: parameters are references already."""
    array = e.lifted.views.get(tensor)
    if array is not None and e.tensor(array) is not None:
        return e.value(tensor)
    return Reference(e.value(tensor))


def _mutable_view(e: Emitter, op: ir.Operation, view: ir.PartitionViewType) -> Expr:
    tensor = op.operands[0]
    key = (e.value(tensor), shape(view.tile), "mut")
    known = e.known_view(key)
    if known is not None:
        return known
    local = Local(f"{e.view_name(tensor)}_tiles")
    call = Method(e.value(tensor), "partition_full_mut", (shape(view.tile),))
    kind = PartitionType(e.element(tensor), view.tile, mutable=True)
    reason = "the launch holds this array alone, and no two blocks access the same tile."
    e.emit(Let(local, kind, Unsafe(call, reason), mutable=True, infers=True))
    e.scopes[-1].views[key] = Var(local)
    return Var(local)


def make_strided_view(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    result = op.results[0]
    view = e.type(result)
    assert isinstance(view, ir.StridedViewType)
    kind = StridedViewType(e.element(op.operands[0]), view.tile, view.steps, view.dim_map)
    _raw_view(e, op, "make_strided_view", kind, view.tile, view.padding)


def make_gather_scatter_view(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    result = op.results[0]
    view = e.type(result)
    assert isinstance(view, ir.GatherScatterViewType)
    kind = GatherScatterViewType(e.element(op.operands[0]), view.tile, view.sparse_dim)
    _raw_view(e, op, "make_gather_scatter_view", kind, view.tile, view.padding)


def _raw_view(
    e: Emitter,
    op: ir.Operation,
    function: str,
    kind: StridedViewType | GatherScatterViewType,
    tile: tuple[int, ...],
    padding: str,
) -> None:
    e.needs_tileir = True
    tensor = op.operands[0]
    call = Call(function, (_reference(e, tensor), shape(tile), Path(marker("padding", padding))))
    e.bind(op.results[0], e.temporary(f"{e.view_name(tensor)}_tiles", kind, Unsafe(call, _OWN_VIEW)))


def get_index_space_shape(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    view = op.operands[0]
    if not isinstance(e.type(view), ir.PartitionViewType):
        _shape_of_view(e, op)
        return
    for axis, result in enumerate(op.results):
        if result in e.uses:
            call = Call("num_tiles", (Reference(e.value(view)), Number(str(axis), "")))
            e.let(result, call, f"num_tiles_{axis}", infers=True)


def _shape_of_view(e: Emitter, op: ir.Operation) -> None:
    """A shim: the public function takes partition views only."""
    view = e.type(op.operands[0])
    if not isinstance(view, ir.StridedViewType):
        raise Refusal(
            "the number of tiles of a gather view has no Rust form in cutile 0.5.0",
            "compute it with ct.cdiv from the shape of the array",
        )
    kind = StridedViewType(e.element(op.operands[0]), view.tile, view.steps, view.dim_map)
    results = ", ".join(e.element(r) for r in op.results)
    name = "_".join(["index_space", kind.element, *map(str, (*view.tile, *view.steps, *view.dim_map))])
    declare(e, name, op.name, ("src",), (), f"(src: &{kind}) -> ({results})", prefix="")
    locals_ = tuple(e.local(r, "num_tiles") if r in e.uses else None for r in op.results)
    kinds = TupleType(tuple(e.rust_type(r) for r in op.results))
    e.emit(LetTuple(locals_, kinds, Call(name, (Reference(e.value(op.operands[0])),))))
    for result, local in zip(op.results, locals_, strict=True):
        if local is not None:
            e.bind(result, Var(local))


# --- loads and stores -----------------------------------------------------------------------------


class _Access:
    """What a load or store through a view says beside its index: plain, unless a flag was set."""

    def __init__(self, e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
        self.ordering = attributes.word("memory_ordering")
        self.scope = attributes.word("memory_scope", "tl_blk")
        hints = e.hints(attributes.any("optimization_hints"))
        latency = hints.pop("latency", None)
        self.latency = None if latency is None else int(latency)
        self.tma = bool(hints.pop("allow_tma", True))
        if hints:
            raise Refusal(
                f"{op.name} with the hints {', '.join(hints)} has no Rust form", "leave these hints out"
            )
        rank = len(op.group("index"))
        inbounds = attributes.any("inbounds")
        self.inbounds = tuple(map(bool, inbounds)) if isinstance(inbounds, tuple) else (False,) * rank
        self.narrow = all(e.is_scalar(v) and e.element(v) == "i32" for v in op.group("index"))

    @property
    def plain(self) -> bool:
        return self.ordering == "weak" and self.tma and not any(self.inbounds) and self.narrow

    def flags(self) -> tuple[Expr, ...]:
        """The arguments of the raw functions from the ordering to the promises."""
        latency = Path("None") if self.latency is None else Path(f"Some({self.latency}i32)")
        promises = ArrayOf(tuple(Path("true" if b else "false") for b in self.inbounds))
        return (
            Path(marker("ordering", self.ordering)),
            Path(marker("scope", self.scope)),
            Path(marker("tma", self.tma)),
            latency,
            promises,
        )


def _index(e: Emitter, op: ir.Operation) -> Expr:
    """`[i, j]` of scalars, or what the raw functions take: tiles of rank 0 and mixed tuples."""
    values = op.group("index")
    if all(e.is_scalar(v) and e.element(v) == "i32" for v in values):
        return ArrayOf(tuple(e.value(v) for v in values))
    items = tuple(
        as_tile(e, v) if e.element(v) != "i32" or not e.is_scalar(v) else e.value(v) for v in values
    )
    if all(e.is_scalar(v) and e.element(v) != "i32" for v in values):
        return ArrayOf(items)
    return TupleOf(items)


def load_view_tko(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    access = _Access(e, op, attributes)
    (view,) = op.group("view")
    tile, token = op.results
    array = e.lifted.behind.get(view)
    if array in e.implicit and access.plain and isinstance(e.type(view), ir.PartitionViewType):
        name, generic = (
            ("load", "") if access.latency is None else ("load_pipelined", f"::<{access.latency}>")
        )
        call = Method(e.value(view), name + generic, (_index(e, op),))
        let_loaded(e, tile, call, e.view_name(view))
        e.bind(token, Var(Local("token")))
        return
    extents = shape(e.shape(tile))
    waiting = op.group("token")
    if access.plain and access.latency is None and waiting and isinstance(e.type(view), ir.PartitionViewType):
        function = e.helpers.load(len(op.group("index")))
        arguments: tuple[Expr, ...] = (
            Reference(e.value(view)),
            _index(e, op),
            e.value(waiting[0]),
            extents,
        )
    else:
        function = "load_view_raw"
        token_argument = Call("Some", (e.value(waiting[0]),)) if waiting else Path("None")
        arguments = (Reference(e.value(view)), _index(e, op), token_argument, *access.flags(), extents)
    e.let_pair(tile, token, Unsafe(Call(function, arguments), _LOAD), f"{e.view_name(view)}_tile", "loaded")


def let_loaded(e: Emitter, tile: ir.Value, call: Expr, array: str) -> None:
    if e.is_scalar(tile):
        raise Refusal("a load of rank 0 has no Rust form", "give the array one axis of length 1")
    e.let(tile, call, f"{array}_tile", infers=True)


def store_view_tko(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    access = _Access(e, op, attributes)
    (view,) = op.group("view")
    array = e.lifted.behind.get(view)
    resigned = _resigned(e, op.group("tile")[0], array)
    value = resigned or e.value(op.group("tile")[0])
    if array in e.implicit:
        if not access.plain or access.latency is not None:
            raise Refusal(
                "a store with hints or an order has no form on a mutable view",
                "leave the hints and the memory order of the store out",
            )
        if e.rung.mutable:
            _store_output(e, op)
            return
        e.emit(Do(Method(e.value(view), "store", (value, _index(e, op)))))
        return
    waiting = op.group("token")
    if access.plain and access.latency is None and waiting and isinstance(e.type(view), ir.PartitionViewType):
        value = resigned or e.named(op.group("tile")[0])
        function = e.helpers.store(len(op.group("index")))
        arguments: tuple[Expr, ...] = (
            Reference(e.value(view)),
            value,
            _index(e, op),
            e.value(waiting[0]),
        )
    else:
        value = resigned or e.named(op.group("tile")[0])
        function = "store_view_raw"
        token_argument = Call("Some", (e.value(waiting[0]),)) if waiting else Path("None")
        arguments = (Reference(e.value(view)), value, _index(e, op), token_argument, *access.flags())
    _let_token(e, op.results[0], Unsafe(Call(function, arguments), _STORE), "stored")


def _resigned(e: Emitter, tile: ir.Value, array: Array | None) -> Expr | None:
    """The tile with the sign of the array's numbers, if it has the other."""
    if array is None or RUST_OF_DTYPE[array.parameter.dtype] == e.element(tile):
        return None
    return with_sign(e, tile, sign_of(RUST_OF_DTYPE[array.parameter.dtype]))[0]


def _store_output(e: Emitter, op: ir.Operation) -> None:
    """`out.store(tile)`: the tile of the block, so the index must be the block's own."""
    index = [e.block_ids.get(v) for v in op.group("index")]
    if index != list(range(len(index))):
        raise Refusal(
            "a safe output is stored at the block's own index, and this one is not",
            "store at (ct.bid(0), ct.bid(1), …), in this order",
        )
    if len(e.scopes) > 1:
        raise Refusal(
            "a safe output is stored once, and this one in a loop or a branch",
            "store behind the loop or the branch",
        )
    (view,), (tile,) = op.group("view"), op.group("tile")
    # cutile infers no type here: the tile has a name and a type, whatever it is.
    local = Local(f"{e.view_name(view)}_tile", python=True)
    e.emit(Let(local, e.rust_type(tile), e.value(tile)))
    e.emit(Do(Method(e.value(view), "store", (Var(local),))))


def _let_token(e: Emitter, token: ir.Value, call: Expr, fallback: str) -> None:
    if token in e.uses:
        e.let(token, call, fallback)
    else:
        e.emit(LetTuple((None,), TokenType(), call))


_MODES: Mapping[str, str] = {
    "add": "Add",
    "addf": "AddF",
    "and": "And",
    "or": "Or",
    "xor": "Xor",
    "max": "Max",
    "min": "Min",
    "umax": "Umax",
    "umin": "Umin",
    "xchg": "Xchg",
}


def mode(word: str) -> str:
    if word not in _MODES:
        raise Refusal(
            f"the atomic operation {word} has no Rust form in cutile 0.5.0",
            f"choose among {', '.join(_MODES)}",
        )
    return f"atomic::{_MODES[word]}"


def atomic_red_view_tko(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    (view,) = op.group("view")
    if attributes.any("inbounds"):
        raise Refusal(
            "an atomic update with promised bounds needs Tile IR 13.5", "leave check_bounds=False out"
        )
    waiting = op.group("token")
    arguments = (
        Reference(e.value(view)),
        e.named(op.group("value")[0]),
        _index(e, op),
        Path(mode(attributes.word("mode"))),
        Path(marker("ordering", attributes.word("memory_ordering"))),
        Path(marker("scope", attributes.word("memory_scope"))),
        Call("Some", (e.value(waiting[0]),)) if waiting else Path("None"),
    )
    _let_token(e, op.results[0], Unsafe(Call("atomic_red_view_raw", arguments), _ATOMIC), "updated")


def get_tensor_shape(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    kind = ArrayType(f"[i32; {len(op.results)}]")
    call = Call("get_tensor_shape", (_reference(e, op.operands[0]),))
    lengths = e.temporary(f"{e.view_name(op.operands[0])}_dims", kind, call)
    for axis, result in enumerate(op.results):
        e.bind(result, Member(lengths, axis, bracket=True))


ROWS: Mapping[str, Row] = {
    "make_tensor_view": make_tensor_view,
    "make_partition_view": make_partition_view,
    "make_strided_view": make_strided_view,
    "make_gather_scatter_view": make_gather_scatter_view,
    "get_index_space_shape": get_index_space_shape,
    "get_tensor_shape": get_tensor_shape,
    "load_view_tko": load_view_tko,
    "store_view_tko": store_view_tko,
    "atomic_red_view_tko": atomic_red_view_tko,
}
