"""A signature of ours as one of cuda.tile's, and what it says of each parameter of a kernel. Knows no
file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import cuda.tile as ct
from cuda.tile.compilation import (
    ArrayConstraint,
    CallingConvention,
    ConstantConstraint,
    KernelSignature,
    ListConstraint,
    ScalarConstraint,
)

from tilebuild.signature import ArrayParameter, Constant, ListParameter, Parameter, ScalarParameter, Signature

_CONVENTIONS = {
    "cutile_python_v1": CallingConvention.cutile_python_v1,
    "cutile_python_v2": CallingConvention.cutile_python_v2,
}


def kernel_signature(signature: Signature, symbol: str) -> KernelSignature:
    """Raises ValueError or TypeError as cuda.tile does for facts that contradict each other."""
    if signature.calling_convention not in _CONVENTIONS:
        known = ", ".join(_CONVENTIONS)
        raise ValueError(f"unknown calling convention {signature.calling_convention!r}; known are {known}")
    convention = _CONVENTIONS[signature.calling_convention]()
    return KernelSignature([_constraint(p) for p in signature.parameters], convention, symbol)


def annotated(signature: Signature, annotations: Sequence[Any]) -> Signature:
    """The signature with the widths that a kernel's annotations ask for: a launch follows them whatever it is
    given."""
    parameters = (_annotated(p, a) for p, a in zip(signature.parameters, annotations, strict=True))
    return replace(signature, parameters=tuple(parameters))


def interface(names: Sequence[str], signature: Signature) -> list[dict[str, Any]]:
    """One entry per Python parameter, in order."""
    return [{"name": name, **_described(p)} for name, p in zip(names, signature.parameters, strict=True)]


def flat_names(names: Sequence[str], signature: Signature) -> list[str]:
    """The names of the entry's parameters: an array is its address, its lengths and its strides; a list is
    the address of its table and its length; a constant is none."""
    flat: list[str] = []
    for name, parameter in zip(names, signature.parameters, strict=True):
        match parameter:
            case ArrayParameter(ndim=ndim):
                flat.append(name)
                flat += [f"{name}_shape{i}" for i in range(ndim)]
                flat += [f"{name}_stride{i}" for i in range(ndim)]
            case ListParameter():
                flat += [name, f"{name}_len"]
            case ScalarParameter():
                flat.append(name)
            case Constant():
                pass
    return flat


def _annotated(parameter: Parameter, annotation: Any) -> Parameter:
    match parameter:
        case ArrayParameter() if getattr(annotation, "array", None) is not None:
            return replace(parameter, index_dtype=str(annotation.array.index_dtype))
        case ListParameter(element=element) if getattr(annotation, "list", None) is not None:
            widened = replace(element, index_dtype=str(annotation.list.element.index_dtype))
            return replace(parameter, element=widened)
        case ScalarParameter() if getattr(annotation, "scalar", None) is not None:
            return ScalarParameter(str(annotation.scalar.dtype))
        case _:
            return parameter


def _constraint(
    parameter: Parameter,
) -> ArrayConstraint | ListConstraint | ScalarConstraint | ConstantConstraint:
    match parameter:
        case ArrayParameter():
            return _array_constraint(parameter)
        case ListParameter():
            return ListConstraint(
                _array_constraint(parameter.element),
                alias_groups=parameter.alias_groups,
                elements_may_alias=parameter.elements_may_alias,
            )
        case ScalarParameter():
            return ScalarConstraint(_dtype(parameter.dtype))
        case Constant():
            return ConstantConstraint(parameter.value)


def _array_constraint(array: ArrayParameter) -> ArrayConstraint:
    return ArrayConstraint(
        _dtype(array.dtype),
        array.ndim,
        index_dtype=_dtype(array.index_dtype),
        stride_lower_bound_incl=array.stride_lower_bound_incl,
        alias_groups=array.alias_groups,
        may_alias_internally=array.may_alias_internally,
        stride_constant=array.stride_constant,
        shape_constant=array.shape_constant,
        stride_divisible_by=array.stride_divisible_by,
        shape_divisible_by=array.shape_divisible_by,
        base_addr_divisible_by=array.base_addr_divisible_by,
    )


def _dtype(name: str) -> Any:
    dtype = getattr(ct, name, None)
    if not isinstance(dtype, ct.DType):
        raise ValueError(f"cuda.tile has no element type {name!r}")
    return dtype


def _described(parameter: Parameter) -> dict[str, Any]:
    match parameter:
        case ArrayParameter(dtype=dtype, ndim=ndim, index_dtype=index_dtype):
            return {"kind": "array", "dtype": dtype, "ndim": ndim, "index_dtype": index_dtype}
        case ListParameter(element=element):
            return {
                "kind": "list",
                "dtype": element.dtype,
                "ndim": element.ndim,
                "index_dtype": element.index_dtype,
            }
        case ScalarParameter(dtype=dtype):
            return {"kind": "scalar", "dtype": dtype}
        case Constant(value=value):
            return {"kind": "constant", "value": value}
