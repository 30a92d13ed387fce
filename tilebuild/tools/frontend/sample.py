"""A small kernel that makes the compiler import and set up all it needs."""

import cuda.tile as ct
from cuda.tile.compilation import (
    ArrayConstraint,
    CallingConvention,
    ConstantConstraint,
    KernelSignature,
    ScalarConstraint,
)


@ct.kernel  # type: ignore[untyped-decorator]
def kernel(x, y, n: int, TILE: ct.Constant[int]):  # type: ignore[no-untyped-def]
    for i in range(n):
        tile = ct.load(x, index=(i,), shape=(TILE,))
        ct.store(y, index=(i,), tile=ct.exp(tile) / ct.sum(tile))


def signature() -> KernelSignature:
    array = ArrayConstraint(
        ct.float32,
        1,
        index_dtype=ct.int32,
        stride_lower_bound_incl=None,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=(1,),
        shape_divisible_by=(16,),
        base_addr_divisible_by=16,
    )
    parameters = [array, array, ScalarConstraint(ct.int32), ConstantConstraint(128)]
    return KernelSignature(parameters, CallingConvention.cutile_python_v1(), "sample")
