"""What a runner is asked to do: cases, and for each step the cubin and the arguments of both sides. Reads
JSON.

A bundle is a folder: `plan.json`, `cubins/`, `files/` (references, input makers) and `runner/`. A case is
written as `Case.to_json()` writes it; it is read here without the models of a case, since the machine that
runs it has an array library and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tilebuild.bound import OVERRIDES
from tilebuild.gpu.elements import STORAGE

SCHEMA = 1
PLAN_FILE = "plan.json"
TEST, BENCHMARK = "gpu-test", "benchmark"
STAGES = (TEST, BENCHMARK)
SideName: TypeAlias = Literal["python", "rust"]
SIDES: tuple[SideName, ...] = ("python", "rust")


class PlanError(Exception):
    """A plan that cannot be run; the text says where."""


@dataclass(frozen=True)
class Array:
    """An array of a case. Strides and offset count elements, the offset from a 256-byte aligned address."""

    role: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    fill: Mapping[str, Any] | None
    alias_of: str | None
    index_dtype: str

    @property
    def item_bytes(self) -> int:
        return int(STORAGE[self.dtype].lstrip("uintfloa")) // 8

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def reach(self) -> int:
        """How many elements of memory it spans, from its first element to its last."""
        if self.size == 0:
            return 0
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))

    @property
    def read(self) -> bool:
        return self.role in ("in", "inout")

    @property
    def written(self) -> bool:
        return self.role in ("out", "inout")


#: An argument slot: `["pointer", array]`, `["table", [array…]]`, or `[dtype, number]`.
Slot: TypeAlias = tuple[str, Any]


@dataclass(frozen=True)
class Side:
    """The program of one side of one step: a cubin, its entry and the arguments in its own order."""

    cubin: str
    symbol: str
    slots: tuple[Slot, ...]


@dataclass(frozen=True)
class Step:
    """One launch. `keywords` are what a reference may be given: parameter name to argument, as the case
    has it.
    """

    kernel: str
    grid: tuple[int, int, int]
    keywords: Mapping[str, Any]
    python: Side
    rust: Side

    def side(self, name: SideName) -> Side:
        return self.python if name == "python" else self.rust


@dataclass(frozen=True)
class Reference:
    file: str
    function: str


@dataclass(frozen=True)
class PlannedCase:
    """A case of a target. `identical` says that the machine code of both sides is the same in every step."""

    target: str
    name: str
    seed: int
    arrays: Mapping[str, Array]
    steps: tuple[Step, ...]
    keys: Mapping[str, str]
    identical: bool
    reference: Reference | None
    inputs: str | None
    bounds: Mapping[str, float]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The arrays that a reference returns, in order."""
        return tuple(name for name, array in self.arrays.items() if array.written)

    def readable(self, name: str) -> bool:
        """Whether a reference may see the array: it holds numbers before the run."""
        array = self.arrays[name]
        root = array if array.alias_of is None else self.arrays[array.alias_of]
        return root.read or root.fill is not None

    def cubins(self, side: SideName) -> list[str]:
        return [step.side(side).cubin for step in self.steps]


@dataclass(frozen=True)
class Plan:
    """`device` is the class that is required, `digest` that of the plan's text."""

    device: Mapping[str, Any] | None
    cases: tuple[PlannedCase, ...]
    digest: str


def read_plan(folder: Path) -> Plan:
    """Raises `PlanError`."""
    try:
        text = (folder / PLAN_FILE).read_bytes()
        document = json.loads(text)
    except (OSError, ValueError) as error:
        raise PlanError(f"{folder / PLAN_FILE}: {error}") from error
    if document.get("schema") != SCHEMA:
        raise PlanError(f"{PLAN_FILE} has schema {document.get('schema')!r}; this runner reads {SCHEMA}")
    cases = []
    for position, data in enumerate(document["cases"]):
        try:
            cases.append(read_case(data))
        except (KeyError, TypeError, ValueError) as error:
            raise PlanError(f"{PLAN_FILE}: case {position}: {type(error).__name__}: {error}") from error
    return Plan(document.get("device"), tuple(cases), sha256(text).hexdigest())


def read_case(data: Mapping[str, Any]) -> PlannedCase:
    """A case of a plan. Raises KeyError, TypeError or ValueError."""
    case, reference = data["case"], data["reference"]
    unknown = set(data["keys"]) - set(STAGES) or set(data["bounds"]) - set(OVERRIDES)
    if unknown:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    return PlannedCase(
        target=data["target"],
        name=case["name"],
        seed=case["seed"],
        arrays={name: read_array(array) for name, array in case["arrays"].items()},
        steps=tuple(_step(step) for step in data["steps"]),
        keys=dict(data["keys"]),
        identical=data["identical"],
        reference=None if reference is None else Reference(reference["file"], reference["function"]),
        inputs=data["inputs"],
        bounds=dict(data["bounds"]),
    )


def read_array(data: Mapping[str, Any]) -> Array:
    """An array as `Case.to_json()` writes it."""
    shape = tuple(data["shape"])
    strides = data.get("strides")
    return Array(
        role=data["role"],
        dtype=data["dtype"],
        shape=shape,
        strides=tuple(_contiguous(shape)) if strides is None else tuple(strides),
        offset=data.get("offset", 0),
        fill=data.get("fill"),
        alias_of=data.get("alias_of"),
        index_dtype=data.get("index_dtype", "i32"),
    )


def files_of(case: PlannedCase) -> Iterator[str]:
    """Every file of the bundle that the case needs."""
    for side in SIDES:
        yield from case.cubins(side)
    if case.reference is not None:
        yield case.reference.file
    if case.inputs is not None:
        yield case.inputs


def _step(data: Mapping[str, Any]) -> Step:
    x, y, z = data["grid"]
    return Step(data["kernel"], (x, y, z), data["keywords"], _side(data["python"]), _side(data["rust"]))


def _side(data: Mapping[str, Any]) -> Side:
    return Side(data["cubin"], data["symbol"], tuple((kind, value) for kind, value in data["slots"]))


def _contiguous(shape: Sequence[int]) -> list[int]:
    return [prod(max(n, 1) for n in shape[axis + 1 :]) for axis in range(len(shape))]
