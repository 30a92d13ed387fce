"""Elements without ml_dtypes give its bits."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilebuild.bound import FORMATS, representable
from tilebuild.gpu.elements import byte_floats, decode, encode, exact

TYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
}


@pytest.mark.parametrize("dtype", ["f8e4m3fn", "f8e5m2", "f8e8m0fnu"])
def test_all_codes_of_8_bit_floats(dtype: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    theirs = codes.view(getattr(ml_dtypes, dtype.replace("f8", "float8_"))).astype(np.float32)
    np.testing.assert_array_equal(byte_floats(dtype), theirs)


@pytest.mark.parametrize("dtype", TYPES)
@given(number=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_rounding_is_that_of_ml_dtypes(dtype: str, number: float) -> None:
    if abs(number) > FORMATS[dtype].largest:
        return
    ours = exact(np, encode(np, np.array([number]), dtype), dtype)[0]
    assert ours == float(np.array([number], np.float32).astype(TYPES[dtype])[0])
    assert representable(float(ours), dtype)


def test_overflow_saturates_and_nan_stays() -> None:
    values = np.array([1e30, -1e30, np.nan])
    for dtype in ("f16", "f8e4m3fn", "f8e5m2"):
        high, low, nan = exact(np, encode(np, values, dtype), dtype)
        assert (high, low) == (FORMATS[dtype].largest, -FORMATS[dtype].largest)
        assert np.isnan(nan)


def test_subnormal_numbers_are_numbers() -> None:
    values = np.array([2.0**-149, -(2.0**-140), -0.0, 1.5, np.inf])
    np.testing.assert_array_equal(exact(np, values.astype(np.float32), "f32"), values)
    assert exact(np, np.array([1], np.uint16), "bf16")[0] == 2.0**-133
    assert exact(np, np.array([0], np.uint8), "f8e8m0fnu")[0] == 2.0**-127


def test_references_get_numbers_that_numpy_knows() -> None:
    stored = encode(np, np.array([1.5, -2.0]), "bf16")
    assert stored.dtype == np.uint16
    assert decode(np, stored, "bf16").dtype == np.float32
    assert decode(np, np.array([0, 1], np.uint8), "bool").dtype == np.bool_
