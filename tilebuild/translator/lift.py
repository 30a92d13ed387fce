"""Entry parameters -> arrays, scalars and lists of the Python function, with the facts that Python assumes
of them.

    %a = assume div_by<16>, %arg0          x: pointer divisible by 16
    %b = assume bounded<0, ?>, %arg1       x: length 0
    %v = make_tensor_view %a, shape=[%b], strides=[1]   x itself

Every value that is a parameter behind assumptions is recorded by what it means. Knows no Rust.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from tilebuild.tileir.tree import Operation, TensorViewType, Value
from tilebuild.translator.program import Parameter, Program
from tilebuild.translator.refusal import Refusal


@dataclass
class Facts:
    """What is assumed of one entry parameter."""

    divisor: int = 1
    bounded: bool = False


@dataclass(eq=False)
class Array:
    """An array parameter: one pointer, then a length and a stride for each axis. `view` is its tensor view,
    if any."""

    parameter: Parameter
    pointer: Value
    lengths: tuple[Value, ...]
    strides: tuple[Value, ...]
    view: TensorViewType | None = None
    by_pointer: bool = False  # something other than its own views is made of the pointer
    stored: bool = False
    loaded: bool = False

    @property
    def name(self) -> str:
        return self.parameter.name

    @property
    def rank(self) -> int:
        return self.parameter.ndim


@dataclass(frozen=True)
class Pointer:
    array: Array


@dataclass(frozen=True)
class Length:
    array: Array
    axis: int


@dataclass(frozen=True)
class Stride:
    array: Array
    axis: int


@dataclass(frozen=True)
class ScalarOf:
    parameter: Parameter


@dataclass(frozen=True)
class ListPointer:
    parameter: Parameter


@dataclass(frozen=True)
class ListLength:
    parameter: Parameter


Origin: TypeAlias = Pointer | Length | Stride | ScalarOf | ListPointer | ListLength


@dataclass
class Lifted:
    """`origin` and `root` cover the parameters and every assumption on them; `views` the views of whole
    arrays."""

    program: Program
    arrays: list[Array] = field(default_factory=list)
    origin: dict[Value, Origin] = field(default_factory=dict)
    root: dict[Value, Value] = field(default_factory=dict)
    facts: dict[Value, Facts] = field(default_factory=dict)
    views: dict[Value, Array] = field(default_factory=dict)
    constants: dict[Value, int] = field(default_factory=dict)  # numbers, also behind assumptions
    behind: dict[Value, Array] = field(default_factory=dict)  # the array behind any view, tile views included


def lift(program: Program) -> Lifted:
    lifted = Lifted(program)
    _parameters(lifted)
    for operation in program.entry.walk():
        _follow(lifted, operation)
    _pointer_uses(lifted)
    _accesses(lifted)
    return lifted


def _parameters(lifted: Lifted) -> None:
    values = list(lifted.program.entry.parameters)
    for parameter in lifted.program.parameters:
        origins = _slots(lifted, parameter, values)
        for origin in origins:
            value = values.pop(0)
            lifted.origin[value] = origin
            lifted.root[value] = value
            lifted.facts[value] = Facts()
    if values:
        raise Refusal(
            f"the entry has {len(values)} parameters more than the Python function",
            "build with the version of cuda-tile that the lock file names",
        )


def _slots(lifted: Lifted, parameter: Parameter, values: list[Value]) -> list[Origin]:
    match parameter.kind:
        case "array":
            n = parameter.ndim
            array = Array(parameter, values[0], tuple(values[1 : n + 1]), tuple(values[n + 1 : 2 * n + 1]))
            lifted.arrays.append(array)
            return [
                Pointer(array),
                *(Length(array, i) for i in range(n)),
                *(Stride(array, i) for i in range(n)),
            ]
        case "scalar":
            return [ScalarOf(parameter)]
        case "list":
            return [ListPointer(parameter), ListLength(parameter)]
        case "constant":
            return []
        case kind:
            raise Refusal(
                f"parameter {parameter.name!r} is a {kind}, which has no Rust form",
                "pass it as an array, a number or a ct.Constant",
            )


def _follow(lifted: Lifted, operation: Operation) -> None:
    if operation.name == "constant" and isinstance(operation.attributes["value"], int):
        lifted.constants[operation.results[0]] = operation.attributes["value"]
    elif operation.name == "assume" and operation.operands[0] in lifted.constants:
        lifted.constants[operation.results[0]] = lifted.constants[operation.operands[0]]
    elif operation.name == "assume" and operation.operands[0] in lifted.root:
        root = lifted.root[operation.operands[0]]
        if _record(lifted.facts[root], operation):
            lifted.root[operation.results[0]] = root
            lifted.origin[operation.results[0]] = lifted.origin[root]
    elif operation.name == "make_tensor_view":
        _view(lifted, operation)


def _record(facts: Facts, operation: Operation) -> bool:
    """Adds an assumption to the facts; false if it is none that a parameter carries."""
    attributes = operation.attributes
    match attributes["predicate"]:
        case "div_by" if "every" not in attributes:
            divisor = attributes["divisor"]
            assert isinstance(divisor, int)
            facts.divisor = max(facts.divisor, divisor)
            return True
        case "bounded" if attributes.get("lower") == 0 and "upper" not in attributes:
            facts.bounded = True
            return True
        case _:
            return False


def _view(lifted: Lifted, operation: Operation) -> None:
    """Records a view of a whole array: its pointer, and its own lengths and strides wherever they are not
    constant."""
    view = lifted.program.entry.types[operation.results[0]]
    assert isinstance(view, TensorViewType)
    base = lifted.origin.get(operation.group("base")[0])
    if not isinstance(base, Pointer):
        return
    array = base.array
    if (
        _are(lifted, array, Length, view.shape, operation.group("shape"))
        and _are(lifted, array, Stride, view.strides, operation.group("strides"))
        and array.view in (None, view)
    ):
        array.view = view
        lifted.views[operation.results[0]] = array


def _is_constant_stride(lifted: Lifted, array: Array, axis: int, value: Value) -> bool:
    """An axis of length 1 has a constant stride, which Python's view takes as a run-time value all the
    same."""
    fixed = array.parameter.strides[axis] if array.parameter.strides else None
    return fixed is not None and lifted.constants.get(value) == fixed


def _are(
    lifted: Lifted,
    array: Array,
    kind: type[Length] | type[Stride],
    extents: tuple[int | None, ...],
    operands: tuple[Value, ...],
) -> bool:
    dynamic = [axis for axis, extent in enumerate(extents) if extent is None]
    return len(extents) == array.rank and all(
        lifted.origin.get(value) == kind(array, axis)
        or (kind is Stride and _is_constant_stride(lifted, array, axis, value))
        for axis, value in zip(dynamic, operands, strict=True)
    )


def _pointer_uses(lifted: Lifted) -> None:
    """Marks the arrays of which more is made than views of the whole."""
    for operation in lifted.program.entry.walk():
        if operation.name == "assume" and operation.results[0] in lifted.root:
            continue
        if operation.name == "make_tensor_view" and operation.results[0] in lifted.views:
            continue
        for value in operation.operands:
            origin = lifted.origin.get(value)
            if isinstance(origin, Pointer | Stride):
                origin.array.by_pointer = True


def _accesses(lifted: Lifted) -> None:
    """Records the array behind each tile view, and which arrays are read and written through views."""
    behind = lifted.behind
    behind.update(lifted.views)
    for operation in lifted.program.entry.walk():
        for value in operation.group("tensor_view"):
            if value in behind:
                behind[operation.results[0]] = behind[value]
        for value in operation.group("view"):
            if value in behind:
                behind[value].loaded |= operation.name == "load_view_tko"
                behind[value].stored |= operation.name in ("store_view_tko", "atomic_red_view_tko")
