"""The numbers of recipes: known answers, and what each recipe promises."""

from __future__ import annotations

import numpy as np
import pytest

from tilebuild.case import Arange, Array, Fill, Fixed, Integers, Lengths, Normal, OneHot, Permutation, Uniform
from tilebuild.fills import numbers, philox_words, stream_key

KEY = stream_key(0, "case", "x")


@pytest.mark.parametrize(
    ("counter", "key", "want"),
    [  # the known answers that come with Random123
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_known_answers(
    counter: tuple[int, ...], key: tuple[int, int], want: tuple[int, ...]
) -> None:
    words = philox_words([np.array([word], dtype=np.uint64) for word in counter], key)
    assert tuple(int(word[0]) for word in words) == want


def _draw(fill: Fill | None, shape: tuple[int, ...] = (64, 100), dtype: str = "f32") -> np.ndarray:
    drawn: np.ndarray = numbers(np, Array(dtype=dtype, shape=shape, fill=fill), KEY)
    assert drawn.shape == shape
    return drawn


def test_normal_numbers() -> None:
    drawn = _draw(Normal(mean=3.0, std=2.0), (1000, 100))
    assert abs(drawn.mean() - 3.0) < 0.03
    assert abs(drawn.std() - 2.0) < 0.03
    assert abs((drawn - 3) / 2).max() < 4.9


def test_uniform_numbers() -> None:
    drawn = _draw(Uniform(low=-1.0, high=3.0), (1000, 100))
    assert drawn.min() >= -1.0
    assert drawn.max() < 3.0
    assert abs(drawn.mean() - 1.0) < 0.02


def test_whole_numbers() -> None:
    assert set(np.unique(_draw(Integers(low=-2, high=3)))) == {-2, -1, 0, 1, 2}
    assert set(np.unique(_draw(Lengths(max=3)))) == {1, 2, 3}
    assert (_draw(Fixed(value=7)) == 7).all()
    assert (_draw(Arange(), (2, 3)) == [[0, 1, 2], [3, 4, 5]]).all()


def test_rows_of_permutations_and_of_single_ones() -> None:
    assert (np.sort(_draw(Permutation()), axis=1) == np.arange(100)).all()
    drawn = _draw(OneHot())
    assert set(np.unique(drawn)) == {0, 1}
    assert (drawn.sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("bool", 0, 1), ("u8", 0, 15), ("i32", -8, 8), ("f16", -4.9, 4.9)]
)
def test_arrays_without_a_recipe_hold_small_numbers(dtype: str, low: float, high: float) -> None:
    drawn = _draw(None, dtype=dtype)
    assert drawn.min() >= low
    assert drawn.max() <= high
    assert len(np.unique(drawn)) > 1


def test_a_number_depends_on_its_place_and_its_key_alone() -> None:
    whole = _draw(Normal(), (100,))
    np.testing.assert_array_equal(_draw(Normal(), (10,)), whole[:10])
    other = numbers(np, Array(dtype="f32", shape=(100,)), stream_key(0, "case", "y"))
    assert not (other == whole).any()
    assert len({stream_key(s, c, a) for s in (0, 1) for c in "ab" for a in "xy"}) == 8


def test_numbers_stay_what_they_are() -> None:
    """Golden: a change here changes the inputs of every recorded verdict."""
    assert _draw(Normal(), (3,)).tolist() == [0.3072327528079487, 1.3067483581108883, 1.0581589373170115]
    assert _draw(Uniform(), (2,)).tolist() == [0.6046739506279581, 0.8798494215525487]
