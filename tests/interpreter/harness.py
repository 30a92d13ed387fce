"""Runs cuTile Python kernels in the interpreter: compiled by the real front end, without a GPU."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import cuda.tile as ct
import numpy as np
from cuda.tile.compilation import (
    ArrayConstraint,
    CallingConvention,
    ConstantConstraint,
    KernelSignature,
    ListConstraint,
    ScalarConstraint,
    export_kernel,
)

from tilebuild.interpreter import elements
from tilebuild.interpreter.arguments import Argument, ListArgument, ScalarArgument, parameters
from tilebuild.interpreter.machine import Run, run
from tilebuild.interpreter.memory import Memory, Region
from tilebuild.tileir.parse import parse
from tilebuild.tileir.tree import Entry, Scalar

#: Element types: short name of the test, cuda.tile's name, Tile IR's name.
ELEMENTS = {
    "bool": ("bool_", "i1"),
    "i8": ("int8", "i8"),
    "i16": ("int16", "i16"),
    "i32": ("int32", "i32"),
    "i64": ("int64", "i64"),
    "u8": ("uint8", "i8"),
    "u16": ("uint16", "i16"),
    "u32": ("uint32", "i32"),
    "u64": ("uint64", "i64"),
    "f16": ("float16", "f16"),
    "bf16": ("bfloat16", "bf16"),
    "f32": ("float32", "f32"),
    "f64": ("float64", "f64"),
    "f8e4m3fn": ("float8_e4m3fn", "f8E4M3FN"),
    "f8e5m2": ("float8_e5m2", "f8E5M2"),
    "f8e8m0fnu": ("float8_e8m0fnu", "f8E8M0FNU"),
}


@cache
def _disassembler() -> str:
    root = distribution("nvidia-cuda-tileiras").locate_file("nvidia/cu13/bin/tileirdisasm")
    return str(root)


def compile_kernel(kernel: Any, signature: Sequence[Any], folder: Path) -> Entry:
    """The Tile IR of a kernel. A signature item is `(dtype, rank)` for an array, `str` for a scalar, else
    a constant."""
    path = folder / "kernel.tilebc"
    constraints = [_constraint(item) for item in signature]
    export_kernel(
        kernel,
        [KernelSignature(constraints, CallingConvention.cutile_python_v1())],
        str(path),
        gpu_code="sm_100",
        output_format="tileir_bytecode",
        bytecode_version="13.4",
    )
    text = subprocess.run([_disassembler(), str(path)], capture_output=True, text=True, check=True).stdout
    return parse(text)


def _constraint(item: Any) -> Any:
    if isinstance(item, tuple):
        dtype, rank = item
        return ArrayConstraint(
            getattr(ct, ELEMENTS[dtype][0]),
            rank,
            index_dtype=ct.int32,
            stride_lower_bound_incl=0,
            alias_groups=(),
            may_alias_internally=False,
        )
    if isinstance(item, ListOf):
        element = _constraint((item.dtype, item.rank))
        return ListConstraint(element, alias_groups=(), elements_may_alias=True)
    if isinstance(item, str):
        return ScalarConstraint(getattr(ct, ELEMENTS[item][0]))
    return ConstantConstraint(item)


@dataclass(frozen=True)
class ListOf:
    dtype: str
    rank: int


def with_list(dtype: str, rank: int) -> ListOf:
    """The signature item of a list of arrays."""
    return ListOf(dtype, rank)


class Bench:
    """A memory with arrays, and programs run over it."""

    def __init__(self) -> None:
        self.memory = Memory(1 << 22)
        self.regions: dict[str, Region] = {}
        self.last: Run | None = None

    def array(self, name: str, dtype: str, content: Any, strides: tuple[int, ...] | None = None) -> Region:
        """Places an array; `content` is a shape for an array that holds poison."""
        element = Scalar(ELEMENTS[dtype][1])
        values = None if isinstance(content, tuple) else np.asarray(content)
        shape = content if isinstance(content, tuple) else values.shape  # type: ignore[union-attr]
        if strides is None:
            strides = tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))
        reach = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        address = self.memory.reserve(reach * elements.item_bytes(element))
        region = Region(name, address, shape, strides, element)
        stored = None if values is None else values.astype(elements.numpy_type(element))
        self.memory.place(region, stored)
        self.regions[name] = region
        return region

    def launch(
        self, entry: Entry, grid: tuple[int, ...], *arguments: Region | list[Region] | bool | int | float
    ) -> None:
        x, y, z = (*grid, 1, 1)[:3]
        words = parameters(entry, [_argument(argument) for argument in arguments], self.memory)
        self.last = run(entry, (x, y, z), words, self.memory)

    def read(self, name: str) -> Any:
        return self.memory.read(self.regions[name])


def _argument(argument: Region | list[Region] | bool | int | float) -> Argument:
    if isinstance(argument, Region):
        return argument
    return ListArgument(tuple(argument)) if isinstance(argument, list) else ScalarArgument(argument)
