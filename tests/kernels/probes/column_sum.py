"""A reduction over axis 0."""

import cuda.tile as ct


@ct.kernel
def column_sum(x, out, TILE_M: ct.Constant[int], TILE_N: ct.Constant[int]):
    """out[j] = sum of x[:, j], accumulated in float32."""
    j = ct.bid(0)
    total = ct.zeros((TILE_N,), dtype=ct.float32)
    for i in range(ct.num_tiles(x, axis=0, shape=(TILE_M, TILE_N))):
        tile = ct.load(x, index=(i, j), shape=(TILE_M, TILE_N), padding_mode=ct.PaddingMode.ZERO)
        total += ct.sum(tile.astype(ct.float32), axis=0)
    ct.store(out, index=(j,), tile=total)
