"""The Rust types that appear in kernels, as data with their spelling. Knows no Tile IR and no statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Shape: TypeAlias = tuple[int, ...]


def extents(shape: Shape) -> str:
    """`1, TILE, 64`: lengths, those that are constants of the kernel by their names."""
    return ", ".join(getattr(n, "name", str(n)) for n in shape)


def shape_generic(shape: Shape) -> str:
    """`{ [1, 1024] }`: a shape as a const generic argument."""
    return "{ [" + extents(shape) + "] }"


@dataclass(frozen=True)
class ScalarType:
    """A plain Rust number or bool; a tile of rank 0 in Tile IR."""

    element: str

    def __str__(self) -> str:
        return self.element


@dataclass(frozen=True)
class TileType:
    element: str
    shape: Shape

    def __str__(self) -> str:
        return f"Tile<{self.element}, {shape_generic(self.shape)}>"


@dataclass(frozen=True)
class PointerType:
    """A parameter `*mut E`."""

    element: str

    def __str__(self) -> str:
        return f"*mut {self.element}"


@dataclass(frozen=True)
class PointerTileType:
    element: str
    shape: Shape

    def __str__(self) -> str:
        return f"PointerTile<*mut {self.element}, {shape_generic(self.shape)}>"


@dataclass(frozen=True)
class TokenType:
    def __str__(self) -> str:
        return "Token"


@dataclass(frozen=True)
class TensorType:
    """A view of memory; -1 is a length known only at run time. `reference` is `""`, `"&"` or `"&mut "`."""

    element: str
    shape: Shape
    reference: str = ""

    def __str__(self) -> str:
        return f"{self.reference}Tensor<{self.element}, {shape_generic(self.shape)}>"


@dataclass(frozen=True)
class PartitionType:
    element: str
    tile: Shape
    mutable: bool = False

    def __str__(self) -> str:
        name = "PartitionMut" if self.mutable else "Partition"
        return f"{name}<{self.element}, {shape_generic(self.tile)}>"


@dataclass(frozen=True)
class StridedViewType:
    element: str
    tile: Shape
    steps: Shape
    dim_map: Shape

    def __str__(self) -> str:
        parts = ", ".join(map(shape_generic, (self.tile, self.steps, self.dim_map)))
        return f"StridedView<{self.element}, {parts}>"


@dataclass(frozen=True)
class GatherScatterViewType:
    element: str
    tile: Shape
    sparse_dim: int

    def __str__(self) -> str:
        return f"GatherScatterView<{self.element}, {shape_generic(self.tile)}, {self.sparse_dim}>"


@dataclass(frozen=True)
class TupleType:
    items: tuple[RustType, ...]

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.items)) + ")"


@dataclass(frozen=True)
class ArrayType:
    """`[i32; 2]`, and the descriptors `Shape<…>` and `Array<…>` by their `spelling`."""

    spelling: str

    def __str__(self) -> str:
        return self.spelling


RustType: TypeAlias = (
    ScalarType
    | TileType
    | PointerType
    | PointerTileType
    | TokenType
    | TensorType
    | PartitionType
    | StridedViewType
    | GatherScatterViewType
    | TupleType
    | ArrayType
)
