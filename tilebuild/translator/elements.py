"""Which Rust element type each value has: Tile IR integers have no sign, Rust's do.

Values that must agree form classes: operands and result of an addition, what a loop carries, what a reshape
reads and gives. A class takes its sign from what is fixed (parameters, loaded elements, block ids), else
from the operations that say signed or unsigned, else from the type in the Python source, else it is signed.
An operation whose sign still differs from that of its operands is noticed where it is printed, never here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilebuild.tileir.tree import (
    Operation,
    PartitionViewType,
    Pointer,
    Scalar,
    StridedViewType,
    TensorViewType,
    TileType,
    Value,
)
from tilebuild.translator.lift import Length, Lifted, ListLength, ScalarOf, Stride
from tilebuild.translator.lift import Pointer as PointerOrigin
from tilebuild.translator.refusal import Refusal

#: cuda.tile dtype -> Rust element type.
RUST_OF_DTYPE: Mapping[str, str] = {
    "bool_": "bool",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "tfloat32": "tf32",
    "float8_e4m3fn": "f8e4m3fn",
    "float8_e5m2": "f8e5m2",
    "float8_e8m0fnu": "f8e8m0fnu",
    "float4_e2m1fn": "f4e2m1fn",
}

#: Tile IR element -> Rust element type, for those without a sign to choose.
_FIXED: Mapping[str, str] = {
    "i1": "bool",
    "f16": "f16",
    "bf16": "bf16",
    "f32": "f32",
    "f64": "f64",
    "tf32": "tf32",
    "f8E4M3FN": "f8e4m3fn",
    "f8E5M2": "f8e5m2",
    "f8E8M0FNU": "f8e8m0fnu",
    "f4E2M1FN": "f4e2m1fn",
}
_INTEGERS = ("i8", "i16", "i32", "i64")

#: Operations whose operands of these groups and results share one element type.
_TIES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("addi", "subi", "muli", "divi", "remi", "mini", "maxi", "andi", "ori", "xori"), ("lhs", "rhs")
    ),
    **dict.fromkeys(("shli", "shri"), ("lhs", "rhs")),
    **dict.fromkeys(("negi", "absi", "reshape", "broadcast", "permute"), ("source",)),
    "mulhii": ("x", "y"),
    "select": ("val_if_true", "val_if_false"),
    "cat": ("lhs", "rhs"),
    "extract": ("source",),
    "insert": ("source", "destination"),
    "assume": ("value",),
    "mmai": ("acc",),
    "offset": ("ptr",),
    "atomic_rmw_tko": ("pointers", "arg"),
    "atomic_cas_tko": ("pointers", "cmp", "val"),
    "load_ptr_tko": ("source", "padding_value"),
    "store_ptr_tko": ("destination", "value"),
}

#: Operations whose attribute `signedness` speaks of these operands (or, last, of the result).
_VOTERS: Mapping[str, tuple[str, ...]] = {
    "divi": ("lhs",),
    "remi": ("lhs",),
    "mini": ("lhs",),
    "maxi": ("lhs",),
    "shri": ("lhs",),
    "cmpi": ("lhs",),
    "exti": ("from",),
    "itof": ("from",),
    "ftoi": (),
}


class Elements:
    """Rust element types by value."""

    def __init__(self, lifted: Lifted) -> None:
        self._lifted = lifted
        self._types = lifted.program.entry.types
        self._parent = list(range(len(self._types)))
        self._fixed: dict[int, str] = {}
        self._votes: dict[int, list[str]] = {}
        for operation in lifted.program.entry.walk():
            self._tie(operation)
        for operation in lifted.program.entry.walk():
            self._fix(operation)
        self._fix_parameters()

    def of(self, value: Value) -> str:
        """The Rust element type of a tile or of what a pointer points to."""
        name = self._element(value)
        if name in _FIXED:
            return _FIXED[name]
        if name not in _INTEGERS:
            raise Refusal(
                f"Tile IR element type {name} has no Rust type in cutile 0.5.0",
                f"use one of {', '.join(RUST_OF_DTYPE)}",
            )
        root = self._find(value)
        if root in self._fixed:
            return self._fixed[root]
        votes = self._votes.get(root)
        if votes:
            return _sized(name, "unsigned" if votes.count("unsigned") > len(votes) / 2 else "signed")
        python = RUST_OF_DTYPE.get(self._lifted.program.dtype(value), "")
        if python[1:] == name[1:]:
            return python
        return name

    def _element(self, value: Value) -> str:
        kind = self._types[value]
        if isinstance(kind, TileType | TensorViewType):
            element = kind.element
        elif isinstance(kind, PartitionViewType | StridedViewType):
            element = kind.tensor.element
        else:
            raise AssertionError(f"a value of type {kind} has no element")
        if isinstance(element, Pointer):
            element = element.pointee
        assert isinstance(element, Scalar)
        return element.name

    # Classes

    def _find(self, value: Value) -> int:
        while self._parent[value] != value:
            self._parent[value] = self._parent[self._parent[value]]
            value = self._parent[value]
        return value

    def _union(self, values: Iterable[Value]) -> None:
        tiles = [v for v in values if isinstance(self._types[v], TileType)]
        for other in tiles[1:]:
            if self._element(other) == self._element(tiles[0]):
                self._parent[self._find(other)] = self._find(tiles[0])

    def _tie(self, operation: Operation) -> None:
        if operation.name in _TIES:
            groups = [v for g in _TIES[operation.name] for v in operation.group(g)]
            self._union((*groups, *operation.results[:1]))
        elif operation.name == "cmpi":
            self._union(operation.operands)
        elif operation.name in ("for", "loop"):
            self._tie_loop(operation)
        elif operation.name == "if":
            for region in operation.regions:
                self._tie_end(region.operations[-1], operation.results)
        elif operation.name in ("reduce", "scan"):
            for i, (operand, result) in enumerate(zip(operation.operands, operation.results, strict=True)):
                arguments = operation.regions[0].arguments[2 * i : 2 * i + 2]
                self._union((operand, result, *arguments))

    def _tie_loop(self, operation: Operation) -> None:
        body = operation.regions[0]
        carried = body.arguments
        if operation.name == "for":
            bounds = [*operation.group("lower"), *operation.group("upper"), *operation.group("step")]
            self._union((body.arguments[0], *bounds))
            carried = body.arguments[1:]
            for argument, result in zip(carried, operation.results, strict=True):
                self._union((argument, result))
        for argument, initial in zip(carried, operation.group("init"), strict=True):
            self._union((argument, initial))
        for end in _ends(body.operations, operation.name):
            self._tie_end(end, operation.results if end.name == "break" else carried)

    def _tie_end(self, end: Operation, targets: tuple[Value, ...]) -> None:
        for value, target in zip(end.operands, targets, strict=False):
            self._union((value, target))

    # Evidence

    def _fix(self, operation: Operation) -> None:
        name = operation.name
        if name in ("get_tile_block_id", "get_num_tile_blocks", "get_index_space_shape", "get_tensor_shape"):
            for result in operation.results:
                self._set(result, self._element(result))
        elif name == "for":
            induction = operation.regions[0].arguments[0]
            self._set(induction, self._element(induction))
        elif name in ("load_view_tko", "store_view_tko", "atomic_red_view_tko"):
            self._fix_access(operation)
        elif name in _VOTERS and "signedness" in operation.attributes:
            voters = [v for g in _VOTERS[name] for v in operation.group(g)] or list(operation.results)
            for value in voters:
                self._votes.setdefault(self._find(value), []).append(str(operation.attributes["signedness"]))

    def _fix_access(self, operation: Operation) -> None:
        array = self._lifted.behind.get(operation.group("view")[0])
        if array is None:
            return
        accessed = {"load_view_tko": operation.results, "store_view_tko": operation.group("tile")}.get(
            operation.name, operation.group("value")
        )
        self._set(accessed[0], RUST_OF_DTYPE[array.parameter.dtype])

    def _fix_parameters(self) -> None:
        for value, origin in self._lifted.origin.items():
            match origin:
                case Length() | Stride():
                    self._set(value, RUST_OF_DTYPE[origin.array.parameter.index_dtype])
                case ScalarOf():
                    self._set(value, RUST_OF_DTYPE[origin.parameter.dtype])
                case PointerOrigin():
                    self._set(value, RUST_OF_DTYPE[origin.array.parameter.dtype])
                case ListLength():
                    self._set(value, "i32")

    def _set(self, value: Value, element: str) -> None:
        if self._element(value) in _INTEGERS:
            self._fixed.setdefault(self._find(value), element)


def _sized(name: str, sign: str) -> str:
    return ("u" if sign == "unsigned" else "i") + name[1:]


def _ends(operations: Iterable[Operation], loop: str) -> Iterable[Operation]:
    """The `continue` and `break` operations of one loop, those inside its `if`s included."""
    for operation in operations:
        if operation.name in ("continue", "break"):
            yield operation
        elif operation.name == "if":
            for region in operation.regions:
                yield from _ends(region.operations, loop)
