"""A Tile IR module as data: what both compilers produced. Knows no text form, no compiler and no file.

Values are numbered: a `Value` is an `int`, unique within one `Entry`, in order of definition: parameters
first, then, in program order, an operation's region arguments before what the region defines, and an
operation's results after its regions. `Entry.types[value]` is its type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Value: TypeAlias = int


@dataclass(frozen=True)
class Scalar:
    """An element type as the disassembler spells it: `i1 i8 i16 i32 i64 f16 bf16 f32 tf32 f64 f8E4M3FN …`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Pointer:
    pointee: Scalar
    attribute: str = ""  # "none" where the disassembler prints `<none>`

    def __str__(self) -> str:
        return f"ptr<{self.pointee}, <{self.attribute}>>" if self.attribute else f"ptr<{self.pointee}>"


Element: TypeAlias = Scalar | Pointer


@dataclass(frozen=True)
class TileType:
    """`tile<128x64xf16>`; rank 0 is a scalar value."""

    shape: tuple[int, ...]
    element: Element

    def __str__(self) -> str:
        return f"tile<{'x'.join([*map(str, self.shape), str(self.element)])}>"


@dataclass(frozen=True)
class TokenType:
    def __str__(self) -> str:
        return "token"


@dataclass(frozen=True)
class TensorViewType:
    """Shape and strides of a view of memory; None is a dimension known only at run time."""

    shape: tuple[int | None, ...]
    element: Element
    strides: tuple[int | None, ...]
    attribute: str = ""  # of the pointer below, as in `Pointer`

    def __str__(self) -> str:
        text = "x".join([*map(_extent, self.shape), str(self.element)])
        if self.strides:
            text += f", strides=[{','.join(map(_extent, self.strides))}]"
        if self.attribute:
            text += f", #cuda_tile.ptr_attr<{self.attribute}>"
        return f"tensor_view<{text}>"


@dataclass(frozen=True)
class PartitionViewType:
    tile: tuple[int, ...]
    padding: str  # "" when undetermined, else zero, neg_zero, nan, pos_inf, neg_inf
    tensor: TensorViewType
    dim_map: tuple[int, ...]

    def __str__(self) -> str:
        return f"partition_view<{_view(self)}{_dim_map(self.dim_map)}>"


@dataclass(frozen=True)
class StridedViewType:
    tile: tuple[int, ...]
    steps: tuple[int, ...]
    padding: str
    tensor: TensorViewType
    dim_map: tuple[int, ...]

    def __str__(self) -> str:
        steps = ",".join(map(str, self.steps))
        return f"strided_view<{_view(self, f', traversal_strides=[{steps}]')}{_dim_map(self.dim_map)}>"


@dataclass(frozen=True)
class GatherScatterViewType:
    tile: tuple[int, ...]
    sparse_dim: int
    padding: str
    tensor: TensorViewType

    def __str__(self) -> str:
        return f"gather_scatter_view<{_view(self)}, sparse_dim={self.sparse_dim}>"


Type: TypeAlias = (
    TileType | TokenType | TensorViewType | PartitionViewType | StridedViewType | GatherScatterViewType
)


def _extent(extent: int | None) -> str:
    return "?" if extent is None else str(extent)


def _view(view: PartitionViewType | StridedViewType | GatherScatterViewType, steps: str = "") -> str:
    padding = f", padding_value = {view.padding}" if view.padding else ""
    return f"tile=({'x'.join(map(str, view.tile))}){steps}{padding}, {view.tensor}"


def _dim_map(dim_map: tuple[int, ...]) -> str:
    identity = tuple(range(len(dim_map)))
    return "" if dim_map == identity else f", dim_map=[{', '.join(map(str, dim_map))}]"


#: The value of an attribute: numbers and words as the disassembler prints them; a flag is True.
AttributeValue: TypeAlias = (
    "int | float | bool | str | tuple[AttributeValue, ...] | Mapping[str, AttributeValue]"
)


@dataclass(frozen=True)
class Location:
    """Where an operation comes from; `callers` are the call sites of inlined helpers, innermost first."""

    path: str
    line: int
    column: int
    callers: tuple[Location, ...] = ()


@dataclass(frozen=True)
class Block:
    arguments: tuple[Value, ...]
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class Operation:
    """One operation. `operands` are flat, in the order of the text; `segments` gives the length of each
    named group, in that order: `{"view": 1, "index": 2, "token": 1}`. An absent optional operand has no
    group.

    A constant and the identities of a reduction hold floats twice: `value` (`identities`) as numbers and
    `bits`, which tells -0.0 from 0.0 and one NaN from another."""

    name: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    segments: Mapping[str, int] = field(default_factory=dict)
    regions: tuple[Block, ...] = ()
    location: Location | None = None

    def group(self, name: str) -> tuple[Value, ...]:
        """The operands of one named group; empty if the group is absent."""
        start = 0
        for key, length in self.segments.items():
            if key == name:
                return self.operands[start : start + length]
            start += length
        return ()


@dataclass(frozen=True)
class Global:
    """A constant in memory; `content` holds `value` and, for floats, `bits`, like the attributes of
    `constant`."""

    symbol: str
    type: Type
    content: Mapping[str, AttributeValue]
    alignment: int
    constant: bool
    private: bool


@dataclass(frozen=True)
class Entry:
    """A kernel entry. `hints` maps a target (`default`, `sm_100`) to its hints."""

    symbol: str
    parameters: tuple[Value, ...]
    body: Block
    types: tuple[Type, ...]
    hints: Mapping[str, Mapping[str, int | bool]] = field(default_factory=dict)
    globals: tuple[Global, ...] = ()

    def walk(self) -> Iterator[Operation]:
        """All operations in program order; an operation before the contents of its regions."""
        return walk(self.body)


def walk(block: Block) -> Iterator[Operation]:
    for operation in block.operations:
        yield operation
        for region in operation.regions:
            yield from walk(region)
