"""The cases of an operator: named arrays, and launches of kernels over them. Knows no kernel and no numbers.

A case is read from the plain data that BUILD functions make, or a launch file holds, and is written back as
JSON. A lone launch is a case of one step; arrays written inside its arguments are named after their position
(`arg0`, `arg2.1` in a list), since a BUILD file does not know the names of the kernel's parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)

from tilebuild.diagnostics import did_you_mean
from tilebuild.grids import LIMITS, ArrayFacts, Bindings, GridError, evaluate_grid
from tilebuild.signature import (
    DTYPES,
    ArrayParameter,
    Constant,
    ListParameter,
    Parameter,
    ScalarParameter,
    Signature,
    array_parameter,
    signature,
)

_INT32 = range(-(1 << 31), 1 << 31)
_ARGUMENT_TAGS = {"str", "list", "const", "scalar", "bool", "int", "float"}
#: 4-bit elements share bytes; an array of them cannot be addressed by element.
_ARRAY_DTYPES = tuple(name for name, (_, bits) in DTYPES.items() if bits >= 8)


class CaseError(Exception):
    """Everything that is wrong with a case: pairs of a field path (`steps.0.args.1.dtype`) and a fact."""

    def __init__(self, problems: Sequence[tuple[tuple[str | int, ...], str]]) -> None:
        super().__init__("\n".join(f"{'.'.join(map(str, path))}: {fact}" for path, fact in problems))
        self.problems = tuple(problems)


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Normal(_Model):
    kind: Literal["normal"] = "normal"
    mean: float = 0.0
    std: float = 1.0


class Uniform(_Model):
    kind: Literal["uniform"] = "uniform"
    low: float = 0.0
    high: float = 1.0


class Integers(_Model):
    """Whole numbers of `low <= x < high`."""

    kind: Literal["integers"] = "integers"
    low: int
    high: int

    @model_validator(mode="after")
    def _not_empty(self) -> Integers:
        if self.low >= self.high:
            raise ValueError(f"integers({self.low}, {self.high}) is empty: the upper end is not part of it")
        return self


class Permutation(_Model):
    """Each row along the last axis is a permutation of 0, 1, … n-1."""

    kind: Literal["permutation"] = "permutation"


class Lengths(_Model):
    """Whole numbers of `1 <= x <= max`."""

    kind: Literal["lengths"] = "lengths"
    max: Annotated[int, Field(ge=1)]


class Fixed(_Model):
    kind: Literal["constant"] = "constant"
    value: bool | int | float


class OneHot(_Model):
    """Each row along the last axis holds a single one."""

    kind: Literal["one_hot"] = "one_hot"


class Arange(_Model):
    """0, 1, 2, … in the order of the elements."""

    kind: Literal["arange"] = "arange"


Fill: TypeAlias = Annotated[
    Normal | Uniform | Integers | Permutation | Lengths | Fixed | OneHot | Arange, Field(discriminator="kind")
]
Role: TypeAlias = Literal["in", "out", "inout", "scratch"]


class Array(_Model):
    """An array of a case. Strides and offset count elements; the offset is that of its first element from a
    256-byte aligned address. An array with `alias_of` lies in the memory of another one."""

    kind: Literal["array"] = "array"
    role: Role = "in"
    dtype: str
    shape: tuple[Annotated[int, Field(ge=0)], ...]
    strides: tuple[int, ...] | None = None
    offset: Annotated[int, Field(ge=0)] = 0
    fill: Fill | None = None
    alias_of: str | None = None
    index_dtype: Literal["i32", "i64"] = "i32"

    @field_validator("shape", "strides", mode="before")
    @classmethod
    def _as_tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("dtype")
    @classmethod
    def _known_dtype(cls, value: str) -> str:
        if value not in _ARRAY_DTYPES:
            known = did_you_mean(value, _ARRAY_DTYPES) or f"arrays hold {', '.join(_ARRAY_DTYPES)}"
            raise ValueError(f"{value!r} is no element type; {known}")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Array:
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise ValueError(f"{len(self.strides)} strides for {len(self.shape)} dimensions")
        if any(stride < 0 for stride in self.strides or ()):
            raise ValueError("a stride is negative; cuTile arrays have none")
        return self

    @property
    def element_strides(self) -> tuple[int, ...]:
        """The strides as given, or those of a contiguous array."""
        if self.strides is not None:
            return self.strides
        strides, reach = [], 1
        for length in reversed(self.shape):
            strides.append(reach)
            reach *= max(length, 1)
        return tuple(reversed(strides))

    @property
    def item_bytes(self) -> int:
        return DTYPES[self.dtype][1] // 8

    @property
    def size(self) -> int:
        """How many elements it has."""
        count = 1
        for length in self.shape:
            count *= length
        return count

    @property
    def reach(self) -> int:
        """How many elements of memory it spans, from its first element to its last."""
        if self.size == 0:
            return 0
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.element_strides, strict=True))

    def parameter(self) -> ArrayParameter:
        """What a launch with this array tells the compiler."""
        return array_parameter(
            self.dtype,
            self.shape,
            self.element_strides,
            self.offset * self.item_bytes,
            "int64" if self.index_dtype == "i64" else "int32",
        )

    def facts(self) -> ArrayFacts:
        return ArrayFacts(self.shape, self.element_strides)


class ArrayList(_Model):
    """A list of arrays as an argument, by their names in the case."""

    kind: Literal["list"] = "list"
    arrays: Annotated[tuple[str, ...], Field(min_length=1)]

    @field_validator("arrays", mode="before")
    @classmethod
    def _as_tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value


class Const(_Model):
    """A compile-time constant."""

    kind: Literal["const"] = "const"
    value: bool | int | float


class Number(_Model):
    """A run-time scalar with a stated element type; a plain number takes the type that cuTile gives it."""

    kind: Literal["scalar"] = "scalar"
    dtype: str
    value: bool | int | float

    @field_validator("dtype")
    @classmethod
    def _known_dtype(cls, value: str) -> str:
        if value not in DTYPES:
            raise ValueError(
                f"{value!r} is no element type; {did_you_mean(value, DTYPES) or ', '.join(DTYPES)}"
            )
        return value


#: The name of an array, a list of arrays, a constant, or a run-time scalar.
Argument: TypeAlias = str | ArrayList | Const | Number | bool | int | float


def _argument_tag(value: object) -> str | None:
    if isinstance(value, Mapping):
        return str(value.get("kind"))
    return str(getattr(value, "kind", type(value).__name__))


_TaggedArgument: TypeAlias = Annotated[
    Annotated[str, Tag("str")]
    | Annotated[ArrayList, Tag("list")]
    | Annotated[Const, Tag("const")]
    | Annotated[Number, Tag("scalar")]
    | Annotated[bool, Tag("bool")]
    | Annotated[int, Tag("int")]
    | Annotated[float, Tag("float")],
    Discriminator(_argument_tag),
]


class Launch(_Model):
    """One launch of a kernel. Its grid is stated, or follows from the operator's formula."""

    kind: Literal["launch"] = "launch"
    name: str = ""
    kernel: str
    args: tuple[_TaggedArgument, ...]
    grid: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1, max_length=3)] | None = None
    hints: dict[str, Any] = {}
    benchmark: bool = False

    @field_validator("args", "grid", mode="before")
    @classmethod
    def _as_tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("grid")
    @classmethod
    def _launchable(cls, value: tuple[int, ...] | None) -> tuple[int, ...] | None:
        for extent, limit in zip(value or (), LIMITS, strict=False):
            if extent > limit:
                raise ValueError(f"{extent} blocks; the limit there is {limit}")
        return value

    def array_names(self) -> Iterator[str]:
        for argument in self.args:
            if isinstance(argument, str):
                yield argument
            elif isinstance(argument, ArrayList):
                yield from argument.arrays


class Case(_Model):
    """Named arrays and the launches that run over them, in order."""

    kind: Literal["case"] = "case"
    name: Annotated[str, Field(min_length=1)]
    arrays: dict[str, Array]
    steps: tuple[Launch, ...]
    benchmark: bool = False
    seed: int = 0

    @field_validator("steps", mode="before")
    @classmethod
    def _as_tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _closed(self) -> Case:
        if not self.steps:
            raise ValueError("a case needs at least one step")
        for step in self.steps:
            for name in step.array_names():
                if name not in self.arrays:
                    hint = did_you_mean(name, self.arrays)
                    fact = f"{step.kernel!r} is given {name!r}, and the case has no such array"
                    raise ValueError(f"{fact}; {hint}" if hint else fact)
        for name, array in self.arrays.items():
            self._check_alias(name, array)
        return self

    def _check_alias(self, name: str, array: Array) -> None:
        if array.alias_of is None:
            return
        target = self.arrays.get(array.alias_of)
        if target is None:
            hint = did_you_mean(array.alias_of, self.arrays)
            fact = f"{name!r} is an alias of {array.alias_of!r}, and the case has no such array"
            raise ValueError(f"{fact}; {hint}" if hint else fact)
        if target.alias_of is not None:
            raise ValueError(
                f"{name!r} is an alias of the alias {array.alias_of!r}; name {target.alias_of!r} instead"
            )
        if array.fill is not None:
            raise ValueError(
                f"{name!r} is an alias and takes its numbers from {array.alias_of!r}; it has no fill"
            )
        if (array.offset + array.reach) * array.item_bytes > (
            target.offset + target.reach
        ) * target.item_bytes:
            raise ValueError(f"{name!r} reaches beyond the end of {array.alias_of!r}")

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels that it launches, each once, in order."""
        return tuple(dict.fromkeys(step.kernel for step in self.steps))

    def signature(self, step: Launch) -> Signature:
        """The compile signature of one of its steps."""
        return signature([self._parameter(argument) for argument in step.args], step.hints)

    def bindings(self, step: Launch, parameters: Sequence[str]) -> Bindings:
        """What a grid expression of the step's kernel may name; `parameters` are the kernel's, in order.

        Raises `CaseError` when the launch has another number of arguments.
        """
        if len(parameters) != len(step.args):
            counts = f"{len(parameters)} parameters, the launch {len(step.args)} arguments"
            raise CaseError([(("args",), f"{step.kernel!r} has {counts}")])
        bindings: dict[str, int | ArrayFacts] = {}
        for name, argument in zip(parameters, step.args, strict=True):
            value = self.arrays[argument].facts() if isinstance(argument, str) else _number(argument)
            if isinstance(value, ArrayFacts | int):
                bindings[name] = value
        return bindings

    def grid(
        self, step: Launch, parameters: Sequence[str], formula: Sequence[str] | None
    ) -> tuple[int, int, int]:
        """The grid of a step. Raises `CaseError` when it has none or its own disagrees with the formula."""
        stated = step.grid
        if formula is not None:
            try:
                derived = evaluate_grid(tuple(formula), self.bindings(step, parameters))
            except GridError as error:
                raise CaseError([(("grid",), f"{error.fact} {error.help}".rstrip())]) from None
            if stated is not None and _three(stated) != _three(derived):
                raise CaseError(
                    [(("grid",), f"the launch states the grid {stated}, the formula gives {derived}")]
                )
            return _three(derived)
        if stated is None:
            raise CaseError(
                [
                    (
                        ("grid",),
                        f"the launch states no grid, and the operator has no formula for {step.kernel!r}",
                    )
                ]
            )
        return _three(stated)

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    def _parameter(self, argument: Argument) -> Parameter:
        match argument:
            case str():
                return self.arrays[argument].parameter()
            case ArrayList(arrays=names):
                return ListParameter(_merge([self.arrays[name].parameter() for name in names]))
            case Const(value=value):
                return Constant(value)
            case Number(dtype=dtype):
                return ScalarParameter(DTYPES[dtype][0])
            case bool():
                return ScalarParameter("bool_")
            case int():
                return ScalarParameter("int32" if argument in _INT32 else "int64")
            case float():
                return ScalarParameter("float32")


def read_case(data: Mapping[str, Any]) -> Case:
    """A case or a lone launch, from plain data. Raises `CaseError`."""
    document = dict(data)
    lone = document.get("kind") == "launch"
    if lone:
        document, paths = _case_of_launch(document)
    try:
        return Case.model_validate(document)
    except ValidationError as error:
        problems = [(tuple(p["loc"]), _fact(p["msg"])) for p in error.errors(include_url=False)]
        if lone:
            problems = [(_path_in_launch(path, paths), fact) for path, fact in problems]
        raise CaseError([(_without_tags(path), fact) for path, fact in dict(problems).items()]) from None


def array_name(position: int, element: int | None = None) -> str:
    """The name of an array that is written inside the arguments of a lone launch."""
    return f"arg{position}" if element is None else f"arg{position}.{element}"


def _case_of_launch(launch: dict[str, Any]) -> tuple[dict[str, Any], dict[str, tuple[str | int, ...]]]:
    """A one-step case, and where in the launch each of its arrays was written."""
    arrays: dict[str, Any] = {}
    paths: dict[str, tuple[str | int, ...]] = {}
    arguments = list(launch.get("args", ()))
    for position, argument in enumerate(arguments):
        kind = argument.get("kind") if isinstance(argument, Mapping) else None
        if kind == "array":
            name = array_name(position)
            arrays[name], paths[name] = _positional_alias(argument), ("args", position)
            arguments[position] = name
        elif kind == "list":
            names = [array_name(position, element) for element in range(len(argument["arrays"]))]
            for element, (name, array) in enumerate(zip(names, argument["arrays"], strict=True)):
                arrays[name], paths[name] = _positional_alias(array), ("args", position, "arrays", element)
            arguments[position] = {**argument, "arrays": names}
    step = {**launch, "args": arguments}
    case = {"kind": "case", "name": launch.get("name", ""), "arrays": arrays, "steps": [step]}
    return {**case, "benchmark": launch.get("benchmark", False), "seed": step.pop("seed", 0)}, paths


def _positional_alias(array: Mapping[str, Any]) -> dict[str, Any]:
    """In a lone launch `alias_of` is the position of another argument."""
    alias = array.get("alias_of")
    return {**array, "alias_of": array_name(alias)} if isinstance(alias, int) else dict(array)


def _path_in_launch(
    path: tuple[str | int, ...], paths: Mapping[str, tuple[str | int, ...]]
) -> tuple[str | int, ...]:
    match path:
        case ("arrays", str() as name, *rest) if name in paths:
            return (*paths[name], *rest)
        case ("steps", 0, *rest):
            return tuple(rest)
    return path


def _without_tags(path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """A field path without the names of union members that pydantic puts behind `args.<n>` and `fill`."""
    kept = [
        part
        for before, part in zip((None, *path), path, strict=False)
        if not (before == "fill" or (isinstance(before, int) and part in _ARGUMENT_TAGS))
    ]
    return tuple(kept)


def _fact(message: str) -> str:
    return message.removeprefix("Value error, ")


def _number(argument: Argument) -> int | float | None:
    match argument:
        case Const(value=value) | Number(value=value):
            return value
        case str() | ArrayList():
            return None
    return argument


def _three(grid: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*grid, 1, 1)[:3]
    return x, y, z


def _merge(arrays: Sequence[ArrayParameter]) -> ArrayParameter:
    """One constraint for all arrays of a list: a fact holds only if it holds for each. Raises `CaseError`."""
    first = arrays[0]
    if any((a.dtype, a.ndim) != (first.dtype, first.ndim) for a in arrays):
        raise CaseError([(("arrays",), "the arrays of a list must share element type and rank")])
    stride_constant = _agreed([a.stride_constant for a in arrays])
    return ArrayParameter(
        dtype=first.dtype,
        ndim=first.ndim,
        stride_constant=stride_constant,
        shape_constant=_agreed([a.shape_constant for a in arrays]),
        stride_divisible_by=_common([a.stride_divisible_by for a in arrays]),
        shape_divisible_by=_common([a.shape_divisible_by for a in arrays]),
        stride_lower_bound_incl=tuple(0 if c is None else None for c in stride_constant),
        base_addr_divisible_by=min(a.base_addr_divisible_by for a in arrays),
        index_dtype=first.index_dtype,
        may_alias_internally=any(a.may_alias_internally for a in arrays),
    )


def _agreed(facts: Sequence[tuple[int | None, ...]]) -> tuple[int | None, ...]:
    return tuple(column[0] if len(set(column)) == 1 else None for column in zip(*facts, strict=True))


def _common(divisors: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(min(column) for column in zip(*divisors, strict=True))
