"""Views of memory, and the operations that load, store and update. Knows no arithmetic but that of atomics.

A tile that reaches beyond its array has lanes without memory: loads fill them with the view's padding, or
with poison where the padding is undetermined; stores drop them. `inbounds` promises that there are none:
such lanes are accessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilebuild.interpreter import elements
from tilebuild.interpreter.elements import Array
from tilebuild.interpreter.frame import Frame, Handler, Refused
from tilebuild.tileir.tree import (
    Element,
    Entry,
    GatherScatterViewType,
    Operation,
    PartitionViewType,
    Pointer,
    StridedViewType,
    TensorViewType,
    Value,
)

_TileView = PartitionViewType | StridedViewType | GatherScatterViewType


@dataclass(frozen=True)
class TensorView:
    """An array as a kernel sees it: the address of its first element, lengths and strides in elements."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Lanes:
    """The memory of one tile: an address for each lane, and which lanes lie inside the array."""

    addresses: Array
    inside: Array


def _make_tensor_view(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    kind = frame.type(operation.results[0])
    if not isinstance(kind, TensorViewType):
        raise Refused(f"make_tensor_view of {kind}")
    shape = _extents(kind.shape, frame.operands(operation, "shape"))
    strides = _extents(kind.strides, frame.operands(operation, "strides"))
    return (TensorView(int(frame.operand(operation, "base")), shape, strides),)


def idle_strides(entry: Entry) -> frozenset[Value]:
    """Strides of dimensions of length 1, which no address depends on: cuda-tile promises that they are
    divisible by 16 bytes, whatever they are."""
    idle: set[Value] = set()
    needed: set[Value] = set()
    for operation in reversed(list(entry.walk())):
        used = set(operation.operands)
        if operation.name == "make_tensor_view":
            ones = set(_strides_of_ones(entry, operation))
            used = {*operation.group("base"), *operation.group("shape")}
            used |= set(operation.group("strides")) - ones
            idle |= ones
        elif operation.name == "assume" and operation.results[0] in idle - needed:
            idle |= used
            used = set()
        needed |= used
    return frozenset(idle - needed)


def _strides_of_ones(entry: Entry, operation: Operation) -> Iterator[Value]:
    kind = entry.types[operation.results[0]]
    if isinstance(kind, TensorViewType):
        given = iter(operation.group("strides"))
        for length, stride in zip(kind.shape, kind.strides, strict=True):
            value = next(given) if stride is None else None
            if length == 1 and value is not None:
                yield value


def _extents(known: tuple[int | None, ...], given: Sequence[Any]) -> tuple[int, ...]:
    rest = iter(given)
    return tuple(int(next(rest)) if extent is None else extent for extent in known)


def _make_view(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    """A view of tiles adds only what its type says."""
    return (operands[0],)


def _tensor_shape(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    return _integers(frame, operation, operands[0].shape)


def _index_space(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    """How many tiles begin inside the array, along each dimension of the view."""
    kind = _view_type(frame, operation, "src")
    if isinstance(kind, GatherScatterViewType):
        raise Refused("get_index_space_shape of a gather_scatter_view")
    steps = kind.steps if isinstance(kind, StridedViewType) else kind.tile
    lengths = [operands[0].shape[axis] for axis in kind.dim_map]
    return _integers(frame, operation, [-(-n // step) for n, step in zip(lengths, steps, strict=True)])


def _integers(frame: Frame, operation: Operation, numbers: Sequence[int]) -> Sequence[Any]:
    return tuple(
        elements.from_numbers(number, frame.element(result))
        for number, result in zip(numbers, operation.results, strict=True)
    )


def _view_type(frame: Frame, operation: Operation, group: str = "view") -> _TileView:
    kind = frame.type(operation.group(group)[0])
    if not isinstance(kind, _TileView):
        raise Refused(f"{operation.name} of {kind}")
    return kind


def _lanes(frame: Frame, operation: Operation) -> Lanes:
    """The lanes of the tile that the operation's index picks from its view."""
    kind = _view_type(frame, operation)
    view: TensorView = frame.operand(operation, "view")
    index = frame.operands(operation, "index")
    in_bounds = operation.attributes.get("inbounds", ())
    axes = tuple(range(len(kind.tile))) if isinstance(kind, GatherScatterViewType) else kind.dim_map
    addresses = np.full(kind.tile, view.address, dtype=np.int64)
    inside = np.ones(kind.tile, dtype=np.bool_)
    width = elements.item_bytes(kind.tensor.element)
    for dimension, axis in enumerate(axes):
        positions = _positions(kind, dimension, index[dimension])
        column = [-1 if d == dimension else 1 for d in range(len(kind.tile))]
        addresses += (positions * (view.strides[axis] * width)).reshape(column)
        promised = isinstance(in_bounds, tuple) and dimension < len(in_bounds) and in_bounds[dimension]
        if not promised:
            inside &= ((positions >= 0) & (positions < view.shape[axis])).reshape(column)
    return Lanes(addresses, inside)


def _positions(kind: _TileView, dimension: int, index: Any) -> Array:
    """The elements that a tile covers along one of its dimensions."""
    size = kind.tile[dimension]
    if isinstance(kind, GatherScatterViewType):
        start = np.asarray(index).astype(np.int64)
        return start if dimension == kind.sparse_dim else start + np.arange(size, dtype=np.int64)
    step = kind.steps[dimension] if isinstance(kind, StridedViewType) else size
    return int(index) * step + np.arange(size, dtype=np.int64)


def _load_view(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    kind = _view_type(frame, operation)
    lanes = _lanes(frame, operation)
    element = kind.tensor.element
    if lanes.inside.all():
        return frame.memory.load(lanes.addresses, element), None
    loaded = frame.memory.load(lanes.addresses, element, lanes.inside)
    return np.where(lanes.inside, loaded, _padding(frame, kind, lanes.inside.shape)), None


def _padding(frame: Frame, kind: _TileView, shape: tuple[int, ...]) -> Array:
    element = kind.tensor.element
    if kind.padding == "":
        return _undetermined(frame, shape, element)
    value = {"zero": 0.0, "neg_zero": -0.0, "nan": np.nan, "pos_inf": np.inf, "neg_inf": -np.inf}[
        kind.padding
    ]
    return np.full(shape, value).astype(elements.numpy_type(element))


def _undetermined(frame: Frame, shape: tuple[int, ...], element: Element) -> Array:
    frame.saw_undetermined = True
    return elements.poison(shape, element, large=frame.large_poison)


def _store_view(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    lanes = _lanes(frame, operation)
    tile = np.broadcast_to(frame.operand(operation, "tile"), lanes.inside.shape)
    mask = None if lanes.inside.all() else lanes.inside
    frame.memory.store(lanes.addresses, tile, _view_type(frame, operation).tensor.element, mask)
    return (None,)


def _pointee(frame: Frame, operation: Operation, group: str) -> Element:
    pointer = frame.element(operation.group(group)[0])
    if not isinstance(pointer, Pointer):
        raise Refused(f"{operation.name} through {pointer}")
    return pointer.pointee


def _load_pointer(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    element = _pointee(frame, operation, "source")
    addresses = np.asarray(frame.operand(operation, "source"))
    mask = frame.operand(operation, "mask")
    if mask is None or np.all(mask):
        return frame.memory.load(addresses, element), None
    mask = np.broadcast_to(mask, addresses.shape)
    loaded = frame.memory.load(addresses, element, mask)
    other = frame.operand(operation, "padding_value")
    if other is None:
        other = _undetermined(frame, addresses.shape, element)
    return np.where(mask, loaded, other), None


def _store_pointer(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    addresses = np.asarray(frame.operand(operation, "destination"))
    values = np.broadcast_to(frame.operand(operation, "value"), addresses.shape)
    mask = frame.operand(operation, "mask")
    mask = None if mask is None else np.broadcast_to(mask, addresses.shape)
    frame.memory.store(addresses, values, _pointee(frame, operation, "destination"), mask)
    return (None,)


def _unsigned_extremum(evaluate: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def update(old: Array, new: Array) -> Array:
        return evaluate(elements.unsigned(old), elements.unsigned(new)).view(old.dtype)

    return update


_UPDATES: Mapping[str, Callable[[Array, Array], Array]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "add": np.add,
    "addf": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "umax": _unsigned_extremum(np.maximum),
    "umin": _unsigned_extremum(np.minimum),
    "xchg": lambda old, new: new,
}


def _atomic_update(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    element = _pointee(frame, operation, "pointers")
    addresses = np.asarray(frame.operand(operation, "pointers"))
    arguments = np.broadcast_to(frame.operand(operation, "arg"), addresses.shape)
    update = _update(operation)
    old = _one_by_one(
        frame, operation, addresses, element, lambda before, lane: update(before, arguments[lane])
    )
    return old, None


def _compare_and_swap(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    """Compares bits, as the hardware does: a NaN equals itself, and the two zeros differ."""
    element = _pointee(frame, operation, "pointers")
    addresses = np.asarray(frame.operand(operation, "pointers"))
    expected = np.broadcast_to(frame.operand(operation, "cmp"), addresses.shape)
    desired = np.broadcast_to(frame.operand(operation, "val"), addresses.shape)

    def update(before: Array, lane: tuple[int, ...]) -> Array:
        return desired[lane] if before.tobytes() == expected[lane].tobytes() else before

    return _one_by_one(frame, operation, addresses, element, update), None


def _one_by_one(
    frame: Frame,
    operation: Operation,
    addresses: Array,
    element: Element,
    update: Callable[[Array, tuple[int, ...]], Array],
) -> Array:
    """Applies an update lane after lane, since lanes may share an address; returns what each lane found."""
    mask = frame.operand(operation, "mask")
    mask = np.broadcast_to(True if mask is None else mask, addresses.shape)
    found = np.array(_undetermined(frame, addresses.shape, element)) if not mask.all() else None
    if found is None:
        found = np.zeros(addresses.shape, dtype=elements.numpy_type(element))
    for lane in np.ndindex(addresses.shape):
        if mask[lane]:
            address = np.asarray(addresses[lane])
            before = frame.memory.load(address, element)
            found[lane] = before
            frame.memory.store(address, np.asarray(update(before, lane)).astype(found.dtype), element)
    return found


def _atomic_reduce_view(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    lanes = _lanes(frame, operation)
    element = _view_type(frame, operation).tensor.element
    values = np.broadcast_to(frame.operand(operation, "value"), lanes.inside.shape)
    before = frame.memory.load(lanes.addresses, element, lanes.inside)
    # The lanes of a tile have addresses of their own: one update of all of them is one of each.
    after = _update(operation)(before, values).astype(values.dtype)
    frame.memory.store(lanes.addresses, after, element, lanes.inside)
    return (None,)


def _update(operation: Operation) -> Callable[[Array, Array], Array]:
    mode = str(operation.attributes["mode"])
    if mode not in _UPDATES:
        raise Refused(f"the interpreter has no atomic mode {mode!r}")
    return _UPDATES[mode]


def _get_global(frame: Frame, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
    return (np.array(frame.globals[str(operation.attributes["name"])], dtype=np.int64),)


ACCESSES: Mapping[str, Handler] = {
    "make_tensor_view": _make_tensor_view,
    "make_partition_view": _make_view,
    "make_strided_view": _make_view,
    "make_gather_scatter_view": _make_view,
    "get_tensor_shape": _tensor_shape,
    "get_index_space_shape": _index_space,
    "load_view_tko": _load_view,
    "store_view_tko": _store_view,
    "load_ptr_tko": _load_pointer,
    "store_ptr_tko": _store_pointer,
    "atomic_rmw_tko": _atomic_update,
    "atomic_cas_tko": _compare_and_swap,
    "atomic_red_view_tko": _atomic_reduce_view,
    "get_global": _get_global,
}
