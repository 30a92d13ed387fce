"""How far a result may lie from its reference, element by element. Knows no kernel and no device.

    bound = u_out * |reference| + c * u_acc * sqrt(L) * reference(|inputs|) + absolute

`u_out` is the unit roundoff of the output's type, `u_acc` that of the accumulator (float32, or float64 for
float64 outputs), L the reduction length and `c` a constant per type. `absolute` starts at half the smallest
number of the output's type, since below it the relative error of a rounding is unbounded. Integers and truth
values must be exact.

`xp` is the array library, `numpy` or `cupy`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import frexp, isfinite, ldexp, sqrt
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Format:
    """A float format: significant bits, the smallest positive and the largest finite number."""

    precision: int
    smallest: float
    largest: float


FORMATS: Mapping[str, Format] = {
    "f64": Format(53, 2.0**-1074, 1.7976931348623157e308),
    "f32": Format(24, 2.0**-149, (2 - 2.0**-23) * 2.0**127),
    "f16": Format(11, 2.0**-24, 65504.0),
    "tf32": Format(11, 2.0**-136, (2 - 2.0**-10) * 2.0**127),
    "bf16": Format(8, 2.0**-133, (2 - 2.0**-7) * 2.0**127),
    "f8e4m3fn": Format(4, 2.0**-9, 448.0),
    "f8e5m2": Format(3, 2.0**-16, 57344.0),
    "f8e8m0fnu": Format(1, 2.0**-127, 2.0**127),
}
#: The constant of the bound by output type. The inner loops of all but float64 kernels accumulate in float32.
CONSTANTS: Mapping[str, float] = dict.fromkeys(FORMATS, 8.0)
#: What BUILD may override.
OVERRIDES = ("c", "L", "absolute")


@dataclass(frozen=True)
class Bound:
    """The numbers of the formula for one output."""

    dtype: str
    c: float
    length: float
    absolute: float

    @property
    def unit(self) -> float:
        return unit_roundoff(self.dtype)

    @property
    def accumulator_unit(self) -> float:
        return 0.0 if self.dtype not in FORMATS else unit_roundoff("f64" if self.dtype == "f64" else "f32")

    def at(self, want: Any, magnitude: Any) -> Any:
        """The bound of one element, or of arrays of elements."""
        return (
            self.unit * abs(want)
            + self.c * self.accumulator_unit * sqrt(self.length) * magnitude
            + self.absolute
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Worst:
    """The element of an output that lies farthest from its reference, in units of its bound.

    `index` is None for an output without elements. Numbers that JSON does not have are texts: "nan", "inf".
    """

    index: tuple[int, ...] | None
    got: float | int | str
    want: float | int | str
    magnitude: float
    bound: float
    outside: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"index": None if self.index is None else list(self.index)}


def unit_roundoff(dtype: str) -> float:
    """Half the distance from 1 to the next larger number; 0 for exact types."""
    return 2.0 ** -FORMATS[dtype].precision if dtype in FORMATS else 0.0


def representable(value: float, dtype: str) -> bool:
    """Whether an element of this type can hold the number exactly."""
    if dtype not in FORMATS:
        return value == int(value)
    form = FORMATS[dtype]
    if not isfinite(value):
        return True
    _, exponent = frexp(value)
    _, least = frexp(form.smallest)
    scaled = ldexp(value, -max(exponent - form.precision, least - 1))
    return scaled == int(scaled) and abs(value) <= form.largest


def bound_for(
    dtype: str, inputs: Sequence[Sequence[int]], output: Sequence[int], overrides: Mapping[str, float]
) -> Bound:
    """The bound of an output of this type and shape, computed from inputs of these shapes."""
    least = FORMATS[dtype].smallest / 2 if dtype in FORMATS else 0.0
    return Bound(
        dtype,
        overrides.get("c", CONSTANTS.get(dtype, 0.0)),
        overrides.get("L", reduction_length(inputs, output)),
        least + overrides.get("absolute", 0.0),
    )


def reduction_length(inputs: Sequence[Sequence[int]], output: Sequence[int]) -> int:
    """How many terms a sum may have that ends in one element: the longest side of an input.

    Vectors of one length are taken for an element-wise operation, of one term. An operator that reduces
    otherwise says so in BUILD; a test that is too strict fails, it does not hide an error.
    """
    if len(output) == 1 and all(list(shape) in ([], list(output)) for shape in inputs):
        return 1
    return max((length for shape in inputs for length in shape), default=1) or 1


def within(got: float | int, want: float | int, limit: float, dtype: str) -> bool:
    """Whether one element is near enough: what `farthest` asks of every element, for one."""
    if dtype not in FORMATS:
        return abs(got - want) <= limit
    if got != got or want != want:
        return got != got and want != want
    if not isfinite(got):
        return (got > 0) == (want > 0) and abs(want) + limit >= FORMATS[dtype].largest
    return abs(got - want) <= limit


def farthest(xp: ModuleType, got: Any, want: Any, magnitude: Any, bound: Bound) -> Worst:
    """Compares arrays of float64, or of integers for an integer output."""
    if got.shape != want.shape:
        raise ValueError(f"the output has shape {got.shape}, the reference {want.shape}")
    if got.size == 0:
        return Worst(None, 0.0, 0.0, 0.0, 0.0, 0)
    excess, outside = _excess(xp, got, want, magnitude, bound)
    flat = int(xp.argmax(excess))
    index = tuple(int(i) for i in xp.unravel_index(xp.asarray(flat), got.shape)) if got.shape else ()
    element = float(magnitude[index]) if bound.dtype in FORMATS else 0.0
    wanted = want[index].item()
    return Worst(
        index,
        plain(got[index].item()),
        plain(wanted),
        element,
        float(bound.at(wanted, element)) if wanted == wanted and abs(wanted) != float("inf") else 0.0,
        int(outside.sum()),
    )


def _excess(xp: ModuleType, got: Any, want: Any, magnitude: Any, bound: Bound) -> tuple[Any, Any]:
    """Error over bound of each element, infinite where it is outside; and which elements are outside."""
    if bound.dtype not in FORMATS:
        # Differences of unsigned or extreme integers wrap: equality first, distance as float64.
        distance = xp.abs(got.astype(xp.float64) - want.astype(xp.float64))
        outside = (got != want) & ~(
            distance <= bound.absolute if bound.absolute else xp.zeros_like(got, bool)
        )
        return xp.where(outside, 1.0 + distance, 0.0), outside
    limit = bound.at(xp.where(xp.isfinite(want), want, 0.0), magnitude)
    both_nan = xp.isnan(got) & xp.isnan(want)
    largest = FORMATS[bound.dtype].largest
    overflow = xp.isinf(got) & (xp.sign(got) == xp.sign(want)) & (xp.abs(want) + limit >= largest)
    error = xp.where(both_nan | overflow, 0.0, xp.abs(got - want))
    outside = ~(error <= limit)
    ratio = xp.where(xp.isfinite(error), error, xp.inf) / xp.maximum(limit, 2.0**-1074)
    return xp.where(outside & ~(ratio > 1.0), xp.inf, ratio), outside


def plain(value: Any) -> float | int | str:
    """A number as JSON can hold it."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return int(value) if isinstance(value, bool) else value
