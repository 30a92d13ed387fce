"""What a launch means to the compiler, and how it follows from the launch. Knows neither cuda.tile nor a
kernel.

The rules are those of cuda-tile 1.7.0 (`cext/tile_kernel.cpp`): for arrays of rank 5 or less, a stride of 1
is constant, a stride of a multiple of 16 bytes and a length of a multiple of 16 elements are known to be so,
and a length of 1 is constant; the base address is known to be a multiple of 16 bytes or of nothing. The JSON
form is that of a signature file. A test holds these rules against `KernelSignature.from_kernel_args` of the
installed cuda-tile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeAlias

#: Short names of element types, their cuda.tile names and their size in bits.
DTYPES: Mapping[str, tuple[str, int]] = {
    "bool": ("bool_", 8),
    "i8": ("int8", 8),
    "i16": ("int16", 16),
    "i32": ("int32", 32),
    "i64": ("int64", 64),
    "u8": ("uint8", 8),
    "u16": ("uint16", 16),
    "u32": ("uint32", 32),
    "u64": ("uint64", 64),
    "f16": ("float16", 16),
    "bf16": ("bfloat16", 16),
    "f32": ("float32", 32),
    "f64": ("float64", 64),
    "tf32": ("tfloat32", 32),
    "f8e4m3fn": ("float8_e4m3fn", 8),
    "f8e5m2": ("float8_e5m2", 8),
    "f8e8m0fnu": ("float8_e8m0fnu", 8),
    "f4e2m1fn": ("float4_e2m1fn", 4),
}
_MAX_SPECIALISED_RANK = 5
_DIVISOR = 16


@dataclass(frozen=True)
class ArrayParameter:
    """What is known of an array: the fields of `cuda.tile.compilation.ArrayConstraint`, dtype by its
    cuda.tile name.

    Divisors count elements, except that of the base address, which counts bytes.
    """

    dtype: str
    ndim: int
    stride_constant: tuple[int | None, ...]
    shape_constant: tuple[int | None, ...]
    stride_divisible_by: tuple[int, ...]
    shape_divisible_by: tuple[int, ...]
    stride_lower_bound_incl: tuple[int | None, ...]
    base_addr_divisible_by: int = 1
    index_dtype: str = "int32"
    alias_groups: tuple[str, ...] = ()
    may_alias_internally: bool = False


@dataclass(frozen=True)
class ListParameter:
    """A list of arrays: one constraint for all of them."""

    element: ArrayParameter
    alias_groups: tuple[str, ...] = ()
    elements_may_alias: bool = True


@dataclass(frozen=True)
class ScalarParameter:
    dtype: str


@dataclass(frozen=True)
class Constant:
    """A compile-time constant. 1, True and 1.0 are three different constants."""

    value: bool | int | float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and (type(self.value), repr(self.value)) == (
            type(other.value),
            repr(other.value),
        )

    def __hash__(self) -> int:
        return hash((type(self.value), repr(self.value)))


Parameter: TypeAlias = ArrayParameter | ListParameter | ScalarParameter | Constant


@dataclass(frozen=True)
class Signature:
    """Launches with an equal signature share one compilation. `hints` override those of the kernel's
    decorator.
    """

    parameters: tuple[Parameter, ...]
    calling_convention: str = "cutile_python_v1"
    hints: tuple[tuple[str, Any], ...] = ()

    def __hash__(self) -> int:
        # A hint may differ by target, and then it is a mapping.
        return hash(self.name)

    def to_json(self) -> dict[str, Any]:
        return {
            "calling_convention": self.calling_convention,
            "parameters": [_parameter_to_json(p) for p in self.parameters],
            "hints": dict(self.hints),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Signature:
        """Reads an entry of a signature file; keys that are not part of the signature (grid, results) are
        ignored.
        """
        return Signature(
            tuple(_parameter_from_json(p) for p in data["parameters"]),
            data.get("calling_convention", "cutile_python_v1"),
            tuple(sorted((data.get("hints") or {}).items())),
        )

    @property
    def name(self) -> str:
        """A short stable name, `s` and eight hex digits of the content."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return "s" + sha256(text.encode()).hexdigest()[:8]


def array_parameter(
    dtype: str, shape: Sequence[int], strides: Sequence[int], byte_offset: int = 0, index_dtype: str = "int32"
) -> ArrayParameter:
    """What a launch with this array tells the compiler.

    `dtype` is a short name, `shape` and `strides` count elements, `byte_offset` is the distance of the first
    element from a 256-byte aligned address.
    """
    name, bits = DTYPES[dtype]
    rank = len(shape)
    specialised = rank <= _MAX_SPECIALISED_RANK
    stride_constant = tuple(1 if specialised and s == 1 else None for s in strides)
    shape_constant = tuple(1 if specialised and n == 1 else None for n in shape)
    stride_divisor = _DIVISOR * 8 // bits
    return ArrayParameter(
        dtype=name,
        ndim=rank,
        stride_constant=stride_constant,
        shape_constant=shape_constant,
        stride_divisible_by=tuple(
            stride_divisor if specialised and c is None and s * bits % (_DIVISOR * 8) == 0 else 1
            for s, c in zip(strides, stride_constant, strict=True)
        ),
        shape_divisible_by=tuple(
            _DIVISOR if specialised and c is None and n % _DIVISOR == 0 else 1
            for n, c in zip(shape, shape_constant, strict=True)
        ),
        stride_lower_bound_incl=tuple(0 if c is None else None for c in stride_constant),
        base_addr_divisible_by=_DIVISOR if byte_offset % _DIVISOR == 0 else 1,
        index_dtype=index_dtype,
        may_alias_internally=_overlaps(shape, strides),
    )


def signature(parameters: Sequence[Parameter], hints: Mapping[str, Any] | None = None) -> Signature:
    """The signature of one launch: calling convention 2 only where a length is constant."""
    arrays = [p.element if isinstance(p, ListParameter) else p for p in parameters]
    version_2 = any(
        isinstance(a, ArrayParameter) and any(n is not None for n in a.shape_constant) for a in arrays
    )
    return Signature(
        tuple(parameters),
        "cutile_python_v2" if version_2 else "cutile_python_v1",
        tuple(sorted((hints or {}).items())),
    )


def _overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    reach = 1
    for stride, length in sorted(zip(strides, shape, strict=True)):
        if stride < reach:
            return True
        reach = stride * length
    return False


def _parameter_to_json(parameter: Parameter) -> dict[str, Any]:
    match parameter:
        case ArrayParameter():
            return {"array": _array_to_json(parameter)}
        case ListParameter():
            return {
                "list": _array_to_json(parameter.element),
                "alias_groups": list(parameter.alias_groups),
                "elements_may_alias": parameter.elements_may_alias,
            }
        case ScalarParameter():
            return {"scalar": parameter.dtype}
        case Constant():
            return {"constant": parameter.value}


def _array_to_json(array: ArrayParameter) -> dict[str, Any]:
    return {key: list(v) if isinstance(v, tuple) else v for key, v in vars(array).items()}


def _parameter_from_json(data: Mapping[str, Any]) -> Parameter:
    if "array" in data:
        return _array_from_json(data["array"])
    if "list" in data:
        return ListParameter(
            _array_from_json(data["list"]), tuple(data["alias_groups"]), bool(data["elements_may_alias"])
        )
    if "scalar" in data:
        return ScalarParameter(data["scalar"])
    return Constant(data["constant"])


def _array_from_json(data: Mapping[str, Any]) -> ArrayParameter:
    fields: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in data.items()}
    return ArrayParameter(**fields)
