"""Small cuTile programs for tests of the interpreter: each shows one group of operations."""

from typing import Any

import cuda.tile as ct

N = 64


def add(x, y):
    return x + y


def add_towards_zero(x, y):
    return ct.add(x, y, rounding_mode=ct.RoundingMode.RZ)


def multiply_up(x, y):
    return ct.mul(x, y, rounding_mode=ct.RoundingMode.RP)


def divide_down(x, y):
    return ct.truediv(x, y, rounding_mode=ct.RoundingMode.RM)


def multiply_flushed(x, y):
    return ct.mul(x, y, flush_to_zero=True)


def floor_divide(x, y):
    return x // y


def ceil_divide(x, y):
    return ct.cdiv(x, y)


def modulo(x, y):
    return x % y


def shift_left(x, y):
    return x << y


def shift_right(x, y):
    return x >> y


def exclusive_or(x, y):
    return x ^ y


def not_equal(x, y):
    return ct.where(x != y, 1, 0)


def less(x, y):
    return ct.where(x < y, 1, 0)


def largest_with_nan(x, y):
    return ct.maximum(x, y, propagate_nan=True)


def multiply_add(x, y, z):
    return x * y + z


def multiply_subtract(x, y, z):
    return z - x * y


def cube(x):
    return x**3


def to_i32(x):
    return x.astype(ct.int32)


def to_i8(x):
    return x.astype(ct.int8)


def to_i64(x):
    return x.astype(ct.int64)


def to_f16(x):
    return x.astype(ct.float16)


def to_bf16(x):
    return x.astype(ct.bfloat16)


def to_f32(x):
    return x.astype(ct.float32)


def to_f8e4m3fn(x):
    return x.astype(ct.float8_e4m3fn)


def through_tf32(x):
    return x.astype(ct.tfloat32).astype(ct.float32)


def bits(x):
    return ct.bitcast(x, ct.int32)


def row_sums(x):
    return ct.sum(x, axis=1)


def column_products(x):
    return ct.prod(x, axis=0)


def row_maxima(x):
    return ct.max(x, axis=1)


def row_argmin(x):
    return ct.argmin(x, axis=1)


def column_argmax(x):
    return ct.argmax(x, axis=0)


def running_sums(x):
    return ct.cumsum(x, axis=1)


def running_products_backwards(x):
    return ct.cumprod(x, axis=0, reverse=True)


def halves_exchanged(x):
    return ct.cat((ct.extract(x, (0, 1), (8, 8)), ct.extract(x, (0, 0), (8, 8))), 1)


def turned(x):
    return ct.reshape(ct.transpose(x), (8, 16))


def outer_sum(x):
    return ct.sum(x, axis=1)[:, None] + ct.sum(x, axis=0)[None, :]


def unary(function: Any) -> Any:
    """y = function(x) on one tile."""

    @ct.kernel
    def program(x, y):
        ct.store(y, (0,), function(ct.load(x, (0,), (N,))))

    return program


def binary(function: Any) -> Any:
    """z = function(x, y) on one tile."""

    @ct.kernel
    def program(x, y, z):
        ct.store(z, (0,), function(ct.load(x, (0,), (N,)), ct.load(y, (0,), (N,))))

    return program


def ternary(function: Any) -> Any:
    """w = function(x, y, z) on one tile."""

    @ct.kernel
    def program(x, y, z, w):
        tiles = ct.load(x, (0,), (N,)), ct.load(y, (0,), (N,)), ct.load(z, (0,), (N,))
        ct.store(w, (0,), function(*tiles))

    return program


def matrix(function: Any, rows: int, columns: int) -> Any:
    """y = function(x) of a matrix in one tile; y is a vector."""

    @ct.kernel
    def program(x, y):
        ct.store(y, (0,), function(ct.load(x, (0, 0), (rows, columns))))

    return program


def square(function: Any, rows: int, columns: int) -> Any:
    """y = function(x) of a matrix in one tile; y is a matrix."""

    @ct.kernel
    def program(x, y):
        ct.store(y, (0, 0), function(ct.load(x, (0, 0), (rows, columns))))

    return program


@ct.kernel
def product(a, b, c, M: ct.Constant[int], K: ct.Constant[int], L: ct.Constant[int]):
    """c = a @ b + c in one tile."""
    acc = ct.load(c, (0, 0), (M, L))
    ct.store(c, (0, 0), ct.mma(ct.load(a, (0, 0), (M, K)), ct.load(b, (0, 0), (K, L)), acc))


@ct.kernel
def padded(x, y, mode: ct.Constant[int]):
    """y = x in tiles of 16 that reach beyond x, so that the padding shows."""
    i = ct.bid(0)
    if mode == 0:
        tile = ct.load(x, (i,), (16,), padding_mode=ct.PaddingMode.ZERO)
    elif mode == 1:
        tile = ct.load(x, (i,), (16,), padding_mode=ct.PaddingMode.NEG_INF)
    elif mode == 2:
        tile = ct.load(x, (i,), (16,), padding_mode=ct.PaddingMode.NAN)
    else:
        tile = ct.load(x, (i,), (16,))
    ct.store(y, (i,), tile)


@ct.kernel
def transposed(x, y):
    """y = x with its axes exchanged while it is loaded."""
    ct.store(y, (0, 0), ct.load(x, (0, 0), (8, 16), order=(1, 0)))


@ct.kernel
def overlapping(x, y):
    """Rows of y are windows of x that overlap: steps of 4, tiles of 8."""
    i = ct.bid(0)
    windows = x.tiled_view((8,), traversal_steps=(4,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(y, (i, 0), ct.reshape(windows.load((i,)), (1, 8)))


@ct.kernel
def picked_rows(x, rows, y):
    """y = x[rows], the rows picked by a gather view."""
    index = ct.load(rows, (0,), (4,))
    tile = ct.load_advanced_indexing(x, (index, ct.Slice(0, 8)), padding_mode=ct.PaddingMode.ZERO)
    ct.store(y, (0, 0), tile)


@ct.kernel
def gathered(x, index, y):
    """y = x[index], -1 where the index is out of range."""
    i = ct.load(index, (0,), (N,))
    ct.store(y, (0,), ct.gather(x, i, padding_value=-1))


@ct.kernel
def unchecked(x, index, y):
    """y = x[index] without a look at the range."""
    i = ct.load(index, (0,), (N,))
    ct.store(y, (0,), ct.gather(x, i, check_bounds=False))


@ct.kernel
def histogram(x, counts):
    """counts[v] = how many elements of x are v."""
    i = ct.load(x, (ct.bid(0),), (N,))
    ct.atomic_add(counts, i, 1)


@ct.kernel
def atomic_extremes(x, largest, smallest, last):
    """One address for all lanes."""
    v = ct.load(x, (0,), (N,))
    zero = ct.zeros((N,), dtype=ct.int32)
    ct.atomic_max(largest, zero, v)
    ct.atomic_min(smallest, zero, v)
    ct.atomic_xchg(last, zero, v)


@ct.kernel
def locked(lock, value):
    """Adds the block's number to a value under a lock."""
    while ct.atomic_cas(lock, 0, 0, 1, memory_order=ct.MemoryOrder.ACQUIRE) != 0:
        pass
    ct.scatter(value, 0, ct.gather(value, 0) + ct.bid(0))
    ct.atomic_xchg(lock, 0, 0, memory_order=ct.MemoryOrder.RELEASE)


@ct.kernel
def strided_sum(x, y, n: int):
    """y[block] = sum of x[block], x[block + grid], … with a loop that may not run at all."""
    total = 0
    for i in range(ct.bid(0), n, ct.num_blocks(0)):
        total = total + ct.load(x, (i,), ()).item()
    ct.store(y, (ct.bid(0),), total)


@ct.kernel
def first_negative(x, y, n: int):
    """y = the index of the first negative element, or n: a loop that ends early."""
    found = n
    for i in range(n):
        if ct.load(x, (i,), ()).item() < 0:
            found = i
            break
    ct.store(y, (0,), found)


@ct.kernel
def early_return(x, y):
    """y = x where the first element of x is positive, else nothing is written."""
    tile = ct.load(x, (0,), (N,))
    if ct.gather(x, 0) <= 0:
        return
    ct.store(y, (0,), tile)


@ct.kernel
def sum_of_list(arrays, y):
    """y = the sum of a list of arrays."""
    total = ct.zeros((N,), dtype=ct.float32)
    for i in range(len(arrays)):
        total = total + ct.load(arrays[i], (0,), (N,))
    ct.store(y, (0,), total)


@ct.kernel
def inserted(x, y, at: int):
    """y = a tile of zeros with x inserted in a place that is known at run time."""
    zeros = ct.zeros((4, 8), dtype=ct.float32)
    ct.store(y, (0, 0), ct.insert(zeros, (at, 1), ct.load(x, (0, 0), (2, 4))))


@ct.kernel
def packed(x, y):
    """The bytes of x, and back again."""
    tile = ct.pack_to_bytes(ct.load(x, (0,), (N,)))
    ct.store(y, (0,), ct.unpack_from_bytes(tile, ct.float32))


@ct.kernel
def scaled_product(a, a_scale, b, b_scale, c):
    """c = (a * a_scale) @ (b * b_scale), one scale for 32 elements."""
    acc = ct.zeros((16, 16), dtype=ct.float32)
    a_tile, b_tile = ct.load(a, (0, 0), (16, 64)), ct.load(b, (0, 0), (64, 16))
    a_scales, b_scales = ct.load(a_scale, (0, 0), (16, 2)), ct.load(b_scale, (0, 0), (2, 16))
    ct.store(c, (0, 0), ct.mma_scaled(a_tile, a_scales, b_tile, b_scales, acc))


@ct.kernel
def summed_by_view(x, total):
    """total += every tile of x, each added through a view; the last tile reaches beyond both arrays."""
    tile = ct.load(x, (ct.bid(0),), (16,), padding_mode=ct.PaddingMode.ZERO)
    total.tiled_view((16,)).atomic_store_add((0,), tile)


@ct.kernel
def told(x):
    """Says what it sees, and insists on it."""
    value = ct.load(x, (0,), ()).item()
    ct.printf("%d\n", value)
    ct.assert_(value > 0, "must be positive")  # noqa: PT009
