"""The word for paired times follows from the times alone, and behaves as a word for times should."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilebuild.paired import figures, interval, word

Trials = list[list[list[float]]]


def trials(rust: float, again: float = 1.0, noise: float = 0.0005, shift: float = 0.0) -> Trials:
    """Ten trials of twelve rounds around 10 µs; `shift` is what one load differs from another by."""
    generator = Random(1)

    def time(base: float) -> float:
        return round(10_000 * base * (1 + generator.uniform(-noise, noise)), 1)

    found = []
    for _ in range(10):
        load = 1 + generator.uniform(-shift, shift)
        found.append([[time(1), time(again * load), time(rust)] for _ in range(12)])
    return found


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (trials(1.0), "tie"),
        (trials(1.0015), "tie"),
        (trials(1.02), "slower"),
        (trials(0.97), "faster"),
        (trials(1.02, shift=0.025), "tie"),
        (trials(1.02, again=1.05), "unstable"),
        (trials(1.0)[:3], "unstable"),
    ],
)
def test_words(times: Trials, expected: str) -> None:
    assert word(times, figures(times)) == expected


def test_a_throttled_run_decides_nothing() -> None:
    times = trials(0.9)
    assert word(times, figures(times), ["hardware thermal"]) == "unstable"


def test_a_wide_interval_decides_nothing() -> None:
    times = [[[100.0, 100.0, 90.0 + 3 * trial] for _ in range(5)] for trial in range(10)]
    assert word(times, figures(times)) == "unstable"


positive = st.floats(min_value=1000, max_value=1e7).map(lambda x: round(x, 1))
one_trial = st.lists(st.tuples(positive, positive, positive), min_size=3, max_size=6)
many = st.lists(one_trial, min_size=5, max_size=8)


@given(many)
def test_the_interval_holds_the_ratio(times: Trials) -> None:
    found = figures(times)
    assert found.low <= found.ratio <= found.high
    assert found.floor >= 0.002


@given(many)
def test_scale_does_not_matter(times: Trials) -> None:
    doubled = [[[2 * t for t in r] for r in trial] for trial in times]
    first, second = figures(times), figures(doubled)
    assert (first.ratio, first.low, first.high, first.floor) == (
        second.ratio,
        second.low,
        second.high,
        second.floor,
    )
    assert word(times, first) == word(doubled, second)


@given(many, st.randoms())
def test_order_within_a_trial_does_not_matter(times: Trials, random: Random) -> None:
    shuffled = [random.sample(trial, len(trial)) for trial in times]
    assert figures(times) == figures(shuffled)


@given(st.lists(st.tuples(positive, positive), min_size=5, max_size=5))
def test_equal_times_are_a_tie_or_noise(pairs: list[tuple[float, float]]) -> None:
    times = [[[p, again, p]] * 3 for p, again in pairs]
    assert word(times, figures(times)) in ("tie", "unstable")


def test_the_interval_is_the_same_every_time() -> None:
    values = [1.0, 1.1, 0.9, 1.05, 1.02]
    assert interval(values) == interval(values)
    assert interval([1.0]) == (1.0, 1.0)
