"""Float formats of Tile IR: exact conversion between bits, numbers and text. Knows no operation.

The disassembler prints a float in decimal when that text, rounded to nearest even in the element's own
format, gives the same bits, and in hexadecimal otherwise. So the text says the bits exactly, but only with
the format."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    """A binary float format. Without infinity the top exponent holds numbers, and only all-ones is NaN."""

    exponent_bits: int
    mantissa_bits: int
    infinity: bool = True
    nan: bool = True
    signed: bool = True
    zero: bool = True

    @property
    def bias(self) -> int:
        # An exponent of two bits (f4E2M1FN) has bias 1 as well; f8E8M0FNU has 127.
        return int((1 << (self.exponent_bits - 1)) - 1)

    @property
    def width(self) -> int:
        return int(self.signed) + self.exponent_bits + self.mantissa_bits

    @property
    def _all_ones(self) -> int:
        return (1 << (self.exponent_bits + self.mantissa_bits)) - 1


FORMATS: Mapping[str, Format] = {
    "f16": Format(5, 10),
    "bf16": Format(8, 7),
    "tf32": Format(8, 10),
    "f32": Format(8, 23),
    "f64": Format(11, 52),
    "f8E4M3FN": Format(4, 3, infinity=False),
    "f8E5M2": Format(5, 2),
    "f8E8M0FNU": Format(8, 0, infinity=False, signed=False, zero=False),
    "f4E2M1FN": Format(2, 1, infinity=False, nan=False),
    "fnv8E5M3FNU": Format(5, 3, infinity=False, signed=False),
}


def is_float(element: str) -> bool:
    return element in FORMATS


def bits_of_text(text: str, element: str) -> int:
    """The bits of a printed float. Raises `ValueError` where the text is no float of this format."""
    if text.startswith("0x"):
        return int(text, 16)
    negative = text.startswith("-")
    return bits_of_number(abs(Fraction(text)), element, negative)


def bits_of_number(magnitude: Fraction, element: str, negative: bool = False) -> int:
    """The nearest representable number, ties to even; overflow gives infinity, or NaN where there is none."""
    form = FORMATS[element]
    if negative and not form.signed:
        raise ValueError(f"{element} has no negative numbers")
    sign = int(negative) << (form.width - 1)
    if magnitude == 0:
        return sign
    exponent = _floor_log2(magnitude)
    lowest = 1 - form.bias if form.zero else -form.bias
    exponent = max(exponent, lowest)
    steps = round(magnitude / Fraction(2) ** (exponent - form.mantissa_bits))  # round() ties to even
    # Adding instead of combining lets a mantissa that rounds up carry into the exponent.
    hidden = 1 << form.mantissa_bits
    code = (
        ((exponent - lowest) << form.mantissa_bits) + steps
        if form.zero
        else exponent + form.bias + (steps > hidden)
    )
    return sign | min(code, _overflow_code(form))


def number_of_bits(bits: int, element: str) -> float:
    """The number as a Python float: exact for every format, NaN without its payload."""
    form = FORMATS[element]
    if element == "f64":
        return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])
    sign = -1.0 if form.signed and bits >> (form.width - 1) else 1.0
    code = bits & form._all_ones
    exponent, mantissa = code >> form.mantissa_bits, code & ((1 << form.mantissa_bits) - 1)
    top = (1 << form.exponent_bits) - 1
    if form.infinity and exponent == top:
        return math.nan if mantissa else sign * math.inf
    if form.nan and not form.infinity and code == form._all_ones:
        return math.nan
    if not form.zero:
        return math.ldexp(1.0, exponent - form.bias)
    if exponent == 0:
        return sign * math.ldexp(mantissa, 1 - form.bias - form.mantissa_bits)
    return sign * math.ldexp(mantissa + (1 << form.mantissa_bits), exponent - form.bias - form.mantissa_bits)


def text_of_bits(bits: int, element: str) -> str:
    """A text that `bits_of_text` reads back: decimal where the number is finite, else hexadecimal."""
    number = number_of_bits(bits, element)
    if not math.isfinite(number):
        return f"0x{bits:0{(FORMATS[element].width + 3) // 4}X}"
    text = f"{number:.6e}"
    return text if bits_of_text(text, element) == bits else repr(number)


def _overflow_code(form: Format) -> int:
    if form.infinity:
        return ((1 << form.exponent_bits) - 1) << form.mantissa_bits
    return form._all_ones


def _floor_log2(value: Fraction) -> int:
    estimate = value.numerator.bit_length() - value.denominator.bit_length()
    return estimate if Fraction(2) ** estimate <= value else estimate - 1
