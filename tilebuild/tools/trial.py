"""A case, run in the interpreter: its arrays in a memory, its steps one after another. Knows no reference.

A trial says what a program did to the memory besides its results: whether it kept to its arrays, left its
inputs alone, wrote all of its outputs, and did not depend on lanes that hold nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from tilebuild.case import Array, ArrayList, Case, Const, Launch, Number
from tilebuild.fills import numbers, stream_key
from tilebuild.interpreter import elements
from tilebuild.interpreter.arguments import (
    Argument,
    InterfaceError,
    ListArgument,
    ScalarArgument,
    parameters,
    table_bytes,
)
from tilebuild.interpreter.frame import Fault
from tilebuild.interpreter.machine import global_bytes, run
from tilebuild.interpreter.memory import Memory, MemoryFault, Region
from tilebuild.tileir.tree import Entry, Scalar

Values = Mapping[str, Any]

#: The NumPy type of an array as a reference sees it, and its element as Tile IR names it.
_LOGICAL: Mapping[str, tuple[Any, str]] = {
    "bool": (np.bool_, "i1"),
    "i8": (np.int8, "i8"),
    "i16": (np.int16, "i16"),
    "i32": (np.int32, "i32"),
    "i64": (np.int64, "i64"),
    "u8": (np.uint8, "i8"),
    "u16": (np.uint16, "i16"),
    "u32": (np.uint32, "i32"),
    "u64": (np.uint64, "i64"),
    "f16": (np.float16, "f16"),
    "bf16": (ml_dtypes.bfloat16, "bf16"),
    "f32": (np.float32, "f32"),
    "tf32": (np.float32, "tf32"),
    "f64": (np.float64, "f64"),
    "f8e4m3fn": (ml_dtypes.float8_e4m3fn, "f8E4M3FN"),
    "f8e5m2": (ml_dtypes.float8_e5m2, "f8E5M2"),
    "f8e8m0fnu": (ml_dtypes.float8_e8m0fnu, "f8E8M0FNU"),
}


@dataclass(frozen=True)
class Step:
    """One launch with the program that one side runs for it."""

    launch: Launch
    entry: Entry
    grid: tuple[int, int, int]
    #: The kernel's parameters, in order.
    names: Sequence[str]


@dataclass(frozen=True)
class Outcome:
    """What a program left behind. A program that faulted has no results."""

    results: Values
    faults: tuple[str, ...] = ()
    changed_inputs: tuple[str, ...] = ()
    unwritten: tuple[tuple[str, str], ...] = ()  # an output, and what it lacks
    saw_undetermined: bool = False


@dataclass
class _Setting:
    """The memory of one run and where the arrays of the case lie in it."""

    memory: Memory
    regions: dict[str, Region] = field(default_factory=dict)


def logical_type(dtype: str) -> np.dtype[Any]:
    """The NumPy type of an array's elements."""
    kind: np.dtype[Any] = np.dtype(_LOGICAL[dtype][0])
    return kind


def is_filled(array: Array) -> bool:
    """Whether an array has numbers before the first step."""
    return array.alias_of is None and (array.role in ("in", "inout") or array.fill is not None)


def draw_inputs(case: Case, given: Values) -> dict[str, Any]:
    """The content of every array that has some, in its shape and element type; `given` replaces recipes."""
    drawn: dict[str, Any] = {}
    for name, array in case.arrays.items():
        if name in given:
            drawn[name] = stored(np.asarray(given[name]), array.dtype).reshape(array.shape)
        elif is_filled(array):
            key = stream_key(case.seed, case.name, name)
            drawn[name] = stored(numbers(np, array, key), array.dtype)
    return drawn


def stored(values: Any, dtype: str) -> Any:
    """Numbers in an element type. Floats narrower than float32 are rounded by way of it, as the GPU
    runner does."""
    kind = logical_type(dtype)
    if values.dtype == kind or dtype == "f64" or kind.kind in "biu":
        return values.astype(kind)
    return values.astype(np.float32).astype(kind)


def bytes_of(case: Case) -> int:
    """The memory that the arrays of a case need."""
    return sum(array.reach * array.item_bytes for array in case.arrays.values() if array.alias_of is None)


def attempt(
    case: Case, steps: Sequence[Step], inputs: Values, budget: int, large_poison: bool = False
) -> Outcome:
    """Runs the steps on a fresh memory. Raises `TooLarge` and `Refused` of the interpreter."""
    setting = _set_up(case, steps, inputs)
    saw_undetermined = False
    try:
        for step in steps:
            bound = [_argument(argument, setting.regions) for argument in step.launch.args]
            values = parameters(step.entry, [b for b in bound if b is not None], setting.memory)
            done = run(step.entry, step.grid, values, setting.memory, budget, large_poison)
            saw_undetermined |= done.saw_undetermined
            budget -= done.spent
    except (Fault, InterfaceError, MemoryFault) as error:
        return Outcome({}, faults=(str(error),))
    return Outcome(
        results(case, setting),
        changed_inputs=tuple(_changed_inputs(case, setting)),
        unwritten=tuple(_unwritten(case, setting)),
        saw_undetermined=saw_undetermined,
    )


def contents(case: Case, inputs: Values) -> dict[str, Any]:
    """What every array that has numbers holds before the first step, aliases included."""
    setting = _set_up(case, (), inputs)
    return {
        name: _logical(setting.memory.read(setting.regions[name]), array.dtype)
        for name, array in case.arrays.items()
        if is_filled(array if array.alias_of is None else case.arrays[array.alias_of])
    }


def shown_names(case: Case, names: Sequence[Sequence[str]]) -> dict[str, str]:
    """The arrays by the names that a reader knows: in a lone launch, those of the kernel's parameters."""
    shown = {name: name for name in case.arrays}
    if len(case.steps) > 1 or not names:
        return shown
    for parameter, argument in zip(names[0], case.steps[0].args, strict=True):
        if isinstance(argument, str):
            shown[argument] = parameter
        elif isinstance(argument, ArrayList):
            shown |= {name: f"{parameter}[{i}]" for i, name in enumerate(argument.arrays)}
    return shown


def untouched(case: Case, inputs: Values) -> Outcome:
    """What a kernel that does nothing leaves behind."""
    return attempt(case, (), inputs, budget=0)


def results(case: Case, setting: _Setting) -> dict[str, Any]:
    """The outputs of a case, by name."""
    return {
        name: _logical(setting.memory.read(setting.regions[name]), array.dtype)
        for name, array in case.arrays.items()
        if array.role in ("out", "inout")
    }


def _logical(tile: Any, dtype: str) -> Any:
    """The elements of memory in the type that the case gives them: unsigned integers are stored without a
    sign."""
    kind = logical_type(dtype)
    return tile.view(kind) if dtype[0] == "u" else tile


def _set_up(case: Case, steps: Sequence[Step], inputs: Values) -> _Setting:
    sizes = [(a.offset + a.reach) * a.item_bytes for a in case.arrays.values() if a.alias_of is None]
    tables = [_table_size(case, argument) for step in steps for argument in step.launch.args]
    capacity = Memory.room([*sizes, *tables]) + sum(global_bytes(step.entry) for step in steps)
    setting = _Setting(Memory(capacity))
    shown = shown_names(case, [step.names for step in steps])
    # An alias lies in memory that exists already.
    for name, array in sorted(case.arrays.items(), key=lambda item: item[1].alias_of is not None):
        element = Scalar(_LOGICAL[array.dtype][1])
        if array.alias_of is None:
            address = setting.memory.reserve(array.reach * array.item_bytes, array.offset * array.item_bytes)
        else:
            target = case.arrays[array.alias_of]
            start = setting.regions[array.alias_of].address - target.offset * target.item_bytes
            address = start + array.offset * array.item_bytes
        region = Region(shown[name], address, array.shape, array.element_strides, element)
        content = inputs.get(name)
        setting.memory.place(region, None if content is None else _unsigned_to_stored(content))
        setting.regions[name] = region
    return setting


def _unsigned_to_stored(content: Any) -> Any:
    return content.view(f"i{content.dtype.itemsize}") if content.dtype.kind == "u" else content


def _table_size(case: Case, argument: object) -> int:
    if not isinstance(argument, ArrayList):
        return 0
    regions = [Region(n, 0, case.arrays[n].shape, (), Scalar("i64")) for n in argument.arrays]
    return table_bytes(ListArgument(tuple(regions)))


def _argument(argument: object, regions: Mapping[str, Region]) -> Argument | None:
    match argument:
        case str():
            return regions[argument]
        case ArrayList(arrays=names):
            return ListArgument(tuple(regions[name] for name in names))
        case Const():
            return None
        case Number(value=value):
            return ScalarArgument(value)
        case bool() | int() | float():
            return ScalarArgument(argument)
    raise TypeError(f"not an argument: {argument!r}")


def _changed_inputs(case: Case, setting: _Setting) -> list[str]:
    """Inputs that a store touched; an input in the memory of an output is exempt."""
    shared = {a.alias_of for a in case.arrays.values() if a.role != "in"} | {
        name for name, a in case.arrays.items() if a.alias_of and case.arrays[a.alias_of].role != "in"
    }
    return [
        name
        for name, array in case.arrays.items()
        if array.role == "in" and name not in shared and setting.memory.written(setting.regions[name]).any()
    ]


def _unwritten(case: Case, setting: _Setting) -> list[tuple[str, str]]:
    """Outputs with elements that no store touched; an output with a recipe keeps them on purpose."""
    found = []
    for name, array in case.arrays.items():
        if array.role != "out" or array.fill is not None:
            continue
        missing = ~setting.memory.written(setting.regions[name])
        if missing.any():
            first = [int(i) for i in np.argwhere(missing)[0]]
            found.append((name, f"{int(missing.sum())} of {missing.size} elements, first {first}"))
    return found


def first_difference(left: Values, right: Values) -> dict[str, Any] | None:
    """Where two sets of results first differ bit for bit; every NaN equals every other."""
    for name, tile in left.items():
        other = right[name]
        unequal = elements.canonical_bits(tile) != elements.canonical_bits(other)
        if unequal.any():
            index = tuple(int(i) for i in np.argwhere(unequal)[0])
            return {
                "array": name,
                "index": list(index),
                "different": int(unequal.sum()),
                "values": (tile[index], other[index]),
            }
    return None
