"""The disassembler's text of a type. Knows no operation.

tile<128x64xf16>   tile<ptr<f32>>   token   tensor_view<?x8xf32, strides=[?,1]>
partition_view<tile=(8x4), padding_value = zero, tensor_view<…>, dim_map=[1, 0]>
strided_view<tile=(8x4), traversal_strides=[4,4], tensor_view<…>>
gather_scatter_view<tile=(8x4), tensor_view<…>, sparse_dim=0>
"""

from __future__ import annotations

from tilebuild.tileir.lexer import Cursor
from tilebuild.tileir.tree import (
    Element,
    GatherScatterViewType,
    PartitionViewType,
    Pointer,
    Scalar,
    StridedViewType,
    TensorViewType,
    TileType,
    TokenType,
    Type,
)


def read_type(cursor: Cursor) -> Type:
    head = cursor.take()
    if head == "token":
        return TokenType()
    cursor.expect("<")
    match head:
        case "tile":
            shape, element = _shaped(cursor)
            cursor.expect(">")
            if any(extent is None for extent in shape):
                raise cursor.error("a tile has an unknown extent")
            return TileType(tuple(e for e in shape if e is not None), element)
        case "tensor_view":
            return _tensor_view(cursor)
        case "partition_view" | "strided_view" | "gather_scatter_view":
            return _tile_view(cursor, head)
    raise cursor.error(f"unknown type {head!r}")


def _shaped(cursor: Cursor) -> tuple[tuple[int | None, ...], Element]:
    """`?x8xf32` or `8xptr<f32>`."""
    *extents, element = cursor.take().split("x")
    shape = tuple(None if e == "?" else int(e) for e in extents)
    return shape, _pointer(cursor) if element == "ptr" else Scalar(element)


def _pointer(cursor: Cursor) -> Pointer:
    cursor.expect("<")
    pointee, attribute = Scalar(cursor.take()), ""
    if cursor.accept(","):
        cursor.expect("<")
        attribute = cursor.take()
        cursor.expect(">")
    cursor.expect(">")
    return Pointer(pointee, attribute)


def _tensor_view(cursor: Cursor) -> TensorViewType:
    shape, element = _shaped(cursor)
    strides: tuple[int | None, ...] = ()
    attribute = ""
    while cursor.accept(","):
        key = cursor.take()
        if key == "strides":
            cursor.expect("=")
            cursor.expect("[")
            strides = cursor.separated(lambda: _extent(cursor), "]")
        elif key == "#cuda_tile.ptr_attr":
            cursor.expect("<")
            attribute = cursor.take()
            cursor.expect(">")
        else:
            raise cursor.error(f"unknown part of a tensor view: {key!r}")
    cursor.expect(">")
    return TensorViewType(shape, element, strides, attribute)


def _extent(cursor: Cursor) -> int | None:
    return None if cursor.accept("?") else cursor.integer()


def _tile_view(cursor: Cursor, head: str) -> Type:
    tile: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    dim_map: tuple[int, ...] | None = None
    padding, sparse_dim, tensor = "", 0, None
    while True:
        key = cursor.take()
        if key != "tensor_view":
            cursor.expect("=")
        match key:
            case "tile":
                cursor.expect("(")
                tile = tuple(map(int, cursor.take().split("x")))
                cursor.expect(")")
            case "padding_value":
                padding = cursor.take()
            case "traversal_strides":
                cursor.expect("[")
                steps = cursor.separated(cursor.integer, "]")
            case "tensor_view":
                cursor.expect("<")
                tensor = _tensor_view(cursor)
            case "dim_map":
                cursor.expect("[")
                dim_map = cursor.separated(cursor.integer, "]")
            case "sparse_dim":
                sparse_dim = cursor.integer()
            case _:
                raise cursor.error(f"unknown part of a view: {key!r}")
        if cursor.accept(">"):
            break
        cursor.expect(",")
    if tensor is None:
        raise cursor.error("a view has no tensor view")
    dims = tuple(range(len(tile))) if dim_map is None else dim_map
    if head == "partition_view":
        return PartitionViewType(tile, padding, tensor, dims)
    if head == "strided_view":
        return StridedViewType(tile, steps, padding, tensor, dims)
    return GatherScatterViewType(tile, sparse_dim, padding, tensor)
