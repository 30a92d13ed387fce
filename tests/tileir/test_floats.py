"""Floats keep their bits through text, in every format."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilebuild.tileir import floats

_NUMPY = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}


@pytest.mark.parametrize("element", floats.FORMATS)
@given(data=st.data())
def test_bits_survive_their_text(element: str, data: st.DataObject) -> None:
    bits = data.draw(st.integers(0, (1 << floats.FORMATS[element].width) - 1))
    assert floats.bits_of_text(floats.text_of_bits(bits, element), element) == bits


@pytest.mark.parametrize("element", _NUMPY)
@given(number=st.floats(allow_nan=False, allow_infinity=False, min_value=-440, max_value=440))
def test_rounding_is_that_of_numpy(element: str, number: float) -> None:
    dtype = np.dtype(_NUMPY[element])
    expected = np.asarray(number).astype(dtype).view(f"u{dtype.itemsize}")
    negative = math.copysign(1, number) < 0
    assert floats.bits_of_number(Fraction(abs(number)), element, negative) == int(expected)


@pytest.mark.parametrize("element", _NUMPY)
@given(data=st.data())
def test_numbers_are_those_of_numpy(element: str, data: st.DataObject) -> None:
    dtype = np.dtype(_NUMPY[element])
    bits = data.draw(st.integers(0, (1 << floats.FORMATS[element].width) - 1))
    expected = float(np.asarray(bits, f"u{dtype.itemsize}").view(dtype).astype(np.float64))
    got = floats.number_of_bits(bits, element)
    assert got == expected or (math.isnan(got) and math.isnan(expected))
