"""Whether blocks of a grid keep to tiles of their own. Knows no Rust.

Two blocks of a launch run at the same time. What one of them stores and another one loads or stores is a data
race, so a host function that launches a kernel is only safe where it can be seen that this does not happen:
every access to a stored array is at the block's own index along some axis of the grid, in tiles of one shape.
"""

from __future__ import annotations

from tilebuild.tileir.tree import Operation, PartitionViewType, Value
from tilebuild.translator.lift import Array, Lifted


def own_axes(lifted: Lifted) -> frozenset[int]:
    """The axes of the grid along which blocks surely access different tiles of every stored array.

    An index is a block's own along an axis if it is the block id of this axis, or the variable of a loop that
    begins at the block id and goes on by the number of blocks.
    """
    owners = _owners(lifted)
    axes = frozenset(range(3))
    for array in lifted.arrays:
        if array.stored:
            axes &= _own_axes_of(lifted, array, owners)
    return axes


def _own_axes_of(lifted: Lifted, array: Array, owners: dict[Value, int]) -> frozenset[int]:
    types = lifted.program.entry.types
    shapes = set()
    places: set[tuple[int, int]] | None = None
    for operation in lifted.program.entry.walk():
        index = operation.group("index")
        if not index or not any(lifted.behind.get(v) is array for v in operation.group("view")):
            continue
        view = types[operation.group("view")[0]]
        if not isinstance(view, PartitionViewType):
            return frozenset()
        shapes.add((view.tile, view.dim_map))
        own = {(place, owners[v]) for place, v in enumerate(index) if v in owners}
        places = own if places is None else places & own
    if array.by_pointer or len(shapes) != 1:
        return frozenset()
    return frozenset(axis for _, axis in places or ())


def _owners(lifted: Lifted) -> dict[Value, int]:
    """Values that no two blocks share along an axis of the grid, with the axis."""
    ids: dict[Value, int] = {}
    counts: dict[Value, int] = {}
    for operation in lifted.program.entry.walk():
        if operation.name == "get_tile_block_id":
            ids |= {v: axis for axis, v in enumerate(operation.results)}
        elif operation.name == "get_num_tile_blocks":
            counts |= {v: axis for axis, v in enumerate(operation.results)}
        elif operation.name == "assume":
            for known in (ids, counts):
                if operation.operands[0] in known:
                    known[operation.results[0]] = known[operation.operands[0]]
        elif operation.name == "for" and (axis := _strides_over(operation, ids, counts)) is not None:
            ids[operation.regions[0].arguments[0]] = axis
    return ids


def _strides_over(loop: Operation, ids: dict[Value, int], counts: dict[Value, int]) -> int | None:
    (lower,), (step,) = loop.group("lower"), loop.group("step")
    axis = ids.get(lower)
    return axis if axis is not None and counts.get(step) == axis else None
