"""Kernels for the tests of this folder: control flow, tokens and memory that the pairs do not have."""

import io

import cuda.tile as ct
from cuda.tile.compilation import (
    ArrayConstraint,
    CallingConvention,
    ConstantConstraint,
    KernelSignature,
    ScalarConstraint,
    export_kernel,
)


def array(dtype: object, rank: int) -> ArrayConstraint:
    return ArrayConstraint(
        dtype,
        rank,
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=(*[None] * (rank - 1), 1),
        base_addr_divisible_by=16,
    )


@ct.kernel
def gathered(x, index, out, n: int, TILE: ct.Constant[int]):
    i = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    where = ct.gather(index, i, padding_value=0)
    value = ct.gather(x, where, mask=where < n, padding_value=1.5)
    ct.scatter(out, i, value * 2.0 - 1.0)


@ct.kernel
def counted(x, out, n: int, TILE: ct.Constant[int]):
    i = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    bins = ct.gather(x, i) % n
    ct.atomic_add(out, bins, 1)
    ct.atomic_max(out, bins // 2, 7)


@ct.kernel
def collatz(out, limit: int):
    n = ct.bid(0) + 1
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
        if steps > limit:
            break
    ct.scatter(out, ct.bid(0), steps)


@ct.kernel
def early(x, out, n: int, TILE: ct.Constant[int]):
    row = ct.bid(0)
    if row >= n:
        return
    tile = ct.load(x, (row, 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO)
    if row % 2 == 0:
        best, scale = ct.max(tile, axis=1, keepdims=True), 2.0
    else:
        best, scale = ct.sum(tile, axis=1, keepdims=True), 0.5
    ct.store(out, (row, 0), (tile - best) * scale)


@ct.kernel
def running(x, out, TILE: ct.Constant[int]):
    row = ct.bid(0)
    total = ct.zeros((1, TILE), ct.float32)
    peak = ct.zeros((1, TILE), ct.float32)
    for k in range(ct.num_tiles(x, axis=1, shape=(1, TILE))):
        tile = ct.load(x, (row, k), (1, TILE))
        total = total + tile * tile
        peak = ct.maximum(peak, ct.abs(tile))
        ct.store(out, (row, k), ct.cumsum(total / (peak + 1.0), axis=1))


@ct.kernel
def argued(x, out, where, TILE: ct.Constant[int]):
    tile = ct.load(x, (ct.bid(0), 0), (1, TILE))
    position = ct.argmax(tile, axis=1)
    ct.store(where, ct.bid(0), position)
    ct.store(out, (ct.bid(0), 0), ct.exp(tile) - ct.log2(tile))


F32_1, F32_2, I32_1 = array(ct.float32, 1), array(ct.float32, 2), array(ct.int32, 1)
INT, TILE = ScalarConstraint(ct.int32), ConstantConstraint(64)

SIGNATURES = {
    gathered: [F32_1, I32_1, F32_1, INT, TILE],
    counted: [I32_1, I32_1, INT, TILE],
    collatz: [I32_1, INT],
    early: [F32_2, F32_2, INT, TILE],
    running: [F32_2, F32_2, TILE],
    argued: [F32_2, F32_2, I32_1, TILE],
}


def byte_code(kernel: object, symbol: str = "kernel") -> bytes:
    """What the front end makes of a kernel, without debug information in it."""
    buffer = io.BytesIO()
    signature = KernelSignature(SIGNATURES[kernel], CallingConvention.cutile_python_v1(), symbol=symbol)
    export_kernel(
        kernel,
        [signature],
        buffer,
        gpu_code="sm_90",
        output_format="tileir_bytecode",
        bytecode_version="13.4",
    )
    return buffer.getvalue()
