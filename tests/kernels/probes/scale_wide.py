"""Arrays whose lengths and strides are 64-bit integers."""

import cuda.tile as ct


@ct.kernel
def scale_wide(x: ct.IndexedWithInt64, out: ct.IndexedWithInt64, factor: float, TILE: ct.Constant[int]):
    """out = factor * x."""
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(TILE,))
    ct.store(out, index=(i,), tile=tile * factor)
