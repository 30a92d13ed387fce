"""Elements of each type as a GPU's memory holds them, without `ml_dtypes`. Knows no array of a case.

Types that NumPy lacks (bf16, 8-bit floats) lie in memory as unsigned words; here they are rounded from
float64, and read back. `xp` is the array library, `numpy` or `cupy`; both give equal bits, since a number
is first rounded to its format with exact float64 arithmetic and only then stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from tilebuild.bound import FORMATS, Format

#: The NumPy type that an element is stored as.
STORAGE: Mapping[str, str] = {
    "bool": "uint8",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "f16": "float16",
    "bf16": "uint16",
    "f32": "float32",
    "tf32": "float32",
    "f64": "float64",
    "f8e4m3fn": "uint8",
    "f8e5m2": "uint8",
    "f8e8m0fnu": "uint8",
}
_BYTE_FLOATS = ("f8e4m3fn", "f8e5m2", "f8e8m0fnu")
_EXPONENT_BIAS_E8M0 = 127

#: The two patterns that memory is filled with before a run. In the first, every float is NaN; in the second
# it is : a small number. No integer is small in either.
POISONS = ("nan", "sentinel")


def is_float(dtype: str) -> bool:
    return dtype in FORMATS


def poison_byte(dtype: str, poison: str) -> int:
    """The byte that unwritten memory of an array is made of."""
    if poison == "sentinel":
        return 0xA5
    return 0xFF if is_float(dtype) else 0x5A


def encode(xp: ModuleType, numbers: Any, dtype: str) -> Any:
    """Numbers (float64, or any integer type) as stored elements, rounded to nearest even; overflow
    saturates.
    """
    if dtype == "bool":
        return (numbers != 0).astype(xp.uint8)
    if not is_float(dtype):
        return numbers.astype(STORAGE[dtype])
    rounded = _round(xp, numbers.astype(xp.float64), FORMATS[dtype])
    if dtype == "bf16":
        return (rounded.astype(xp.float32).view(xp.uint32) >> 16).astype(xp.uint16)
    if dtype in _BYTE_FLOATS:
        return _encode_bytes(xp, rounded, dtype)
    return rounded.astype(STORAGE[dtype])


def decode(xp: ModuleType, stored: Any, dtype: str) -> Any:
    """Stored elements as a reference takes them: bf16 and 8-bit floats widened to float32."""
    if dtype == "bool":
        return stored != 0
    if dtype == "bf16":
        return (stored.astype(xp.uint32) << 16).view(xp.float32)
    if dtype in _BYTE_FLOATS:
        return xp.asarray(byte_floats(dtype))[stored]
    return stored.copy()


def exact(xp: ModuleType, stored: Any, dtype: str) -> Any:
    """Stored elements as numbers to compare: float64 for floats, integers as they are."""
    if dtype in _BYTE_FLOATS:
        return xp.asarray(byte_floats(dtype).astype(np.float64))[stored]
    if dtype == "bf16":
        return _widen(xp, stored.astype(xp.uint32) << 16)
    if dtype in ("f32", "tf32"):
        return _widen(xp, stored.view(xp.uint32))
    if is_float(dtype):
        return stored.astype(xp.float64)
    return (stored != 0).astype(xp.int64) if dtype == "bool" else stored.copy()


def _widen(xp: ModuleType, words: Any) -> Any:
    """The bits of float32 as float64. CuPy's own conversion takes subnormal numbers for zero."""
    magnitude = words & 0x7FFFFFFF
    small = magnitude.astype(xp.float64) * 2.0**-149
    signed = xp.where(words >> 31 != 0, -small, small)
    return xp.where(magnitude < 0x00800000, signed, words.view(xp.float32).astype(xp.float64))


def _round(xp: ModuleType, numbers: Any, format: Format) -> Any:
    """The nearest number of the format, ties to even: exact float64 arithmetic by powers of two."""
    if format is FORMATS["f64"]:
        return numbers
    _, exponent = xp.frexp(numbers)
    _, least = np.frexp(format.smallest)
    spacing = xp.maximum(exponent - format.precision, int(least) - 1)
    scaled = xp.ldexp(numbers, -spacing)
    rounded = xp.ldexp(xp.rint(scaled), spacing)
    finite = xp.isfinite(numbers)
    return xp.where(finite, xp.clip(rounded, -format.largest, format.largest), numbers)


def byte_floats(dtype: str) -> Any:
    """The numbers of the 256 codes of an 8-bit format."""
    codes = np.arange(256)
    if dtype == "f8e8m0fnu":
        numbers = np.ldexp(1.0, codes - _EXPONENT_BIAS_E8M0)
        return np.where(codes == 0xFF, np.nan, numbers).astype(np.float32)
    mantissa_bits, bias = (3, 7) if dtype == "f8e4m3fn" else (2, 15)
    magnitude = codes & 0x7F
    exponent, mantissa = magnitude >> mantissa_bits, magnitude & ((1 << mantissa_bits) - 1)
    fraction = mantissa / (1 << mantissa_bits)
    numbers = np.where(exponent == 0, np.ldexp(fraction, 1 - bias), np.ldexp(1 + fraction, exponent - bias))
    if dtype == "f8e4m3fn":
        numbers = np.where(magnitude == 0x7F, np.nan, numbers)
    else:
        numbers = np.where(magnitude == 0x7C, np.inf, np.where(magnitude > 0x7C, np.nan, numbers))
    return np.where(codes & 0x80, -numbers, numbers).astype(np.float32)


def _encode_bytes(xp: ModuleType, rounded: Any, dtype: str) -> Any:
    if dtype == "f8e8m0fnu":
        _, exponent = xp.frexp(xp.maximum(rounded, FORMATS[dtype].smallest))
        code = exponent - 1 + _EXPONENT_BIAS_E8M0
        return xp.where(xp.isnan(rounded), 0xFF, code).astype(xp.uint8)
    table = byte_floats(dtype)[:0x80].astype(np.float64)
    finite = xp.asarray(table[np.isfinite(table)])
    code = xp.searchsorted(finite, xp.abs(xp.where(xp.isfinite(rounded), rounded, 0.0)))
    infinity = 0x7C if dtype == "f8e5m2" else 0x7F
    code = xp.where(xp.isnan(rounded), 0x7F, xp.where(xp.isinf(rounded), infinity, code))
    return (code + xp.where(xp.signbit(rounded), 0x80, 0)).astype(xp.uint8)
