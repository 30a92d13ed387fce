"""Figures from paired times: ratio, interval, noise floor and the word for it. Knows no device and no clock.

A *round* is the time of the Python kernel, of the same Python cubin loaded a second time, and of the Rust
kernel, taken one after another in random order. A *trial* is a number of rounds on freshly loaded modules:
byte-identical kernels differ by a shift per load, which no number of rounds inside one load shows. So the
trial is the unit of the interval, and the second load of the same cubin says how large such shifts are: the
noise floor.

Everything here is a function of the times alone, so that anyone can derive the word again from a recorded
row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from random import Random
from statistics import median
from typing import Any, Literal, TypeAlias

#: Times of one round in nanoseconds: Python, the same Python cubin again, Rust.
Round: TypeAlias = Sequence[float]
Trial: TypeAlias = Sequence[Round]
Word: TypeAlias = Literal["tie", "faster", "slower", "unstable"]

MAX_ROUNDS = 200
LEAST_TRIALS = 5
LEAST_ROUNDS = 3
#: Two loads of one cubin that differ by more than this make a run worthless.
NOISE_LIMIT = 0.03
#: An interval wider than this decides nothing.
WIDTH_LIMIT = 0.05
#: What no run here resolves, however quiet it looked.
RESOLUTION = 0.002
_RESAMPLES = 1000
_TAIL = 0.025
_DIGITS = 6


@dataclass(frozen=True)
class Figures:
    """What paired times say. `ratio` is Rust's time over Python's: below 1, Rust is faster."""

    python_ns: float
    rust_ns: float
    ratio: float
    low: float
    high: float
    floor: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def figures(trials: Sequence[Trial]) -> Figures:
    """The figures of a run, rounded to six digits after the point."""
    ratios = [median(rust / python for python, _, rust in trial) for trial in trials]
    shifts = [abs(median(again / python for python, again, _ in trial) - 1) for trial in trials]
    low, high = interval(ratios)
    return Figures(
        python_ns=round(median(r[0] for trial in trials for r in trial), 1),
        rust_ns=round(median(r[2] for trial in trials for r in trial), 1),
        ratio=round(median(ratios), _DIGITS),
        low=round(low, _DIGITS),
        high=round(high, _DIGITS),
        floor=round(max(RESOLUTION, *shifts), _DIGITS),
    )


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % bootstrap interval of the median. The draws are fixed: equal values give an equal interval."""
    generator = Random(0)  # its random() is the same sequence in every Python
    count = len(values)
    medians = sorted(
        median(values[int(generator.random() * count)] for _ in range(count)) for _ in range(_RESAMPLES)
    )
    middle = median(values)
    cut = int(_RESAMPLES * _TAIL)
    return min(middle, medians[cut]), max(middle, medians[_RESAMPLES - 1 - cut])


def doubts(trials: Sequence[Trial], found: Figures, throttled: Sequence[str] = ()) -> list[str]:
    """Why the run decides nothing; empty for a run to trust."""
    reasons = []
    if len(trials) < LEAST_TRIALS or min(len(trial) for trial in trials) < LEAST_ROUNDS:
        reasons.append(f"fewer than {LEAST_TRIALS} trials of {LEAST_ROUNDS} rounds")
    if throttled:
        reasons.append("the device slowed itself down: " + ", ".join(throttled))
    if found.floor > NOISE_LIMIT:
        reasons.append(f"two loads of the same cubin differ by {found.floor:.1%}")
    if found.high - found.low > WIDTH_LIMIT:
        reasons.append(f"the interval is {found.high - found.low:.1%} wide")
    return reasons


def word(trials: Sequence[Trial], found: Figures, throttled: Sequence[str] = ()) -> Word:
    """`tie` unless the interval, widened by the noise floor on both sides, excludes 1."""
    if doubts(trials, found, throttled):
        return "unstable"
    if found.high + found.floor < 1:
        return "faster"
    if found.low - found.floor > 1:
        return "slower"
    return "tie"
