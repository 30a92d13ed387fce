"""The numbers of an array, from its recipe. Knows no case and no device.

Numbers come from a counter: element `i` of an array is a function of (seed, case, array, i) alone.
Everything before the last rounding is integer arithmetic or one IEEE operation on float64 at a time, so
NumPy and CuPy give equal bits on every machine. That is why `normal` is a sum of eight 16-bit draws:
logarithms differ between libraries, integers do not. Its tails end at 4.9 standard deviations.

`xp` is the array library, `numpy` or `cupy`.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from math import prod
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from tilebuild.case import Array

#: A fill as JSON has it: its kind, and the kind's own numbers. Read without the models of a case, so that the
#: same file draws the numbers on a machine that has an array library and nothing else.
Recipe: TypeAlias = Mapping[str, Any]

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_LOW = 0xFFFFFFFF
#: Mean and standard deviation of the sum of eight whole numbers drawn from 0 … 65535.
_SUM_MEAN = 8 * 65535 / 2
_SUM_STD = 53509.91992145008


def stream_key(seed: int, case: str, array: str) -> tuple[int, int]:
    """The key of an array's stream of numbers: two 32-bit words."""
    digest = sha256(f"{seed}\0{case}\0{array}".encode()).digest()
    return int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:8], "little")


def philox(xp: ModuleType, counters: Any, key: tuple[int, int]) -> tuple[Any, Any, Any, Any]:
    """Philox4x32-10 (Salmon et al., SC 2011): four 32-bit words, held in uint64, for each 64-bit counter."""
    words = [counters & _LOW, counters >> 32, xp.zeros_like(counters), xp.zeros_like(counters)]
    return philox_words(words, key)


def philox_words(words: list[Any], key: tuple[int, int]) -> tuple[Any, Any, Any, Any]:
    """The ten rounds on four words of a counter; each is an array of uint64 that holds 32-bit values."""
    c0, c1, c2, c3 = words
    k0, k1 = key
    for _ in range(_ROUNDS):
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            (product1 >> 32) ^ c1 ^ k0,
            product1 & _LOW,
            (product0 >> 32) ^ c3 ^ k1,
            product0 & _LOW,
        )
        k0, k1 = (k0 + _WEYL[0]) & _LOW, (k1 + _WEYL[1]) & _LOW
    return c0, c1, c2, c3


def default_fill(dtype: str) -> Recipe:
    """What an array without a recipe holds."""
    if dtype == "bool":
        return {"kind": "integers", "low": 0, "high": 2}
    if dtype[0] == "u":
        return {"kind": "integers", "low": 0, "high": 16}
    if dtype[0] == "i":
        return {"kind": "integers", "low": -8, "high": 9}
    return {"kind": "normal", "mean": 0.0, "std": 1.0}


def numbers(xp: ModuleType, array: Array, key: tuple[int, int]) -> Any:
    """The array's elements in its shape: float64 or int64, not yet rounded to its element type."""
    recipe = default_fill(array.dtype) if array.fill is None else array.fill.model_dump()
    return draw(xp, recipe, array.shape, key)


def draw(xp: ModuleType, recipe: Recipe, shape: tuple[int, ...], key: tuple[int, int]) -> Any:
    """Numbers of a recipe in the given shape: float64 or int64."""
    counters = xp.arange(prod(shape), dtype=xp.uint64)
    return _draw(xp, recipe, counters, key, shape).reshape(shape)


def _draw(xp: ModuleType, recipe: Recipe, counters: Any, key: tuple[int, int], shape: tuple[int, ...]) -> Any:
    match recipe:
        case {"kind": "normal", "mean": mean, "std": std}:
            total = sum((word & 0xFFFF) + (word >> 16) for word in philox(xp, counters, key))
            return (total.astype(xp.float64) - _SUM_MEAN) / _SUM_STD * std + mean
        case {"kind": "uniform", "low": low, "high": high}:
            unit = (_random64(xp, counters, key) >> 11).astype(xp.float64) * 2.0**-53
            return unit * (high - low) + low
        case {"kind": "integers", "low": low, "high": high}:
            return _integers(xp, counters, key, low, high - low)
        case {"kind": "lengths", "max": largest}:
            return _integers(xp, counters, key, 1, largest)
        case {"kind": "constant", "value": value}:
            return xp.full(counters.shape, value, dtype=xp.float64 if isinstance(value, float) else xp.int64)
        case {"kind": "arange"}:
            return counters.astype(xp.int64)
        case {"kind": "permutation"}:
            return xp.argsort(_random64(xp, counters, key).reshape(shape), axis=-1).astype(xp.int64)
        case {"kind": "one_hot"}:
            row_length = shape[-1]
            rows = xp.arange(counters.size // row_length, dtype=xp.uint64)
            chosen = _integers(xp, rows, key, 0, row_length)
            return (xp.arange(row_length)[None, :] == chosen[:, None]).astype(xp.int64)
    raise ValueError(f"not a fill: {dict(recipe)}")


def _random64(xp: ModuleType, counters: Any, key: tuple[int, int]) -> Any:
    low, high, _, _ = philox(xp, counters, key)
    return low | (high << 32)


def _integers(xp: ModuleType, counters: Any, key: tuple[int, int], low: int, count: int) -> Any:
    return (_random64(xp, counters, key) % count).astype(xp.int64) + low
