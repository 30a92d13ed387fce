"""Matrix multiplication with float32 accumulation; blocks walk the output in groups of tile rows."""

import cuda.tile as ct


def swizzle(block, tiles_m, tiles_n, GROUP_M):
    """The output tile of a block: GROUP_M tile rows are finished, column by column, before the next ones."""
    blocks_in_group = GROUP_M * tiles_n
    group = block // blocks_in_group
    first_m = group * GROUP_M
    group_rows = min(tiles_m - first_m, GROUP_M)
    tile_m = first_m + (block % group_rows)
    tile_n = (block % blocks_in_group) // group_rows
    return tile_m, tile_n


@ct.kernel
def matmul(
    a,
    b,
    c,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
    TILE_K: ct.Constant[int],
    GROUP_M: ct.Constant[int],
):
    """c = a @ b."""
    tiles_m = ct.cdiv(a.shape[0], TILE_M)
    tiles_n = ct.cdiv(b.shape[1], TILE_N)
    tile_m, tile_n = swizzle(ct.bid(0), tiles_m, tiles_n, GROUP_M)

    acc = ct.full((TILE_M, TILE_N), 0.0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(TILE_M, TILE_K))):
        # Both factors are zero beyond the end of K: undetermined padding on one side could be NaN.
        a_tile = ct.load(a, index=(tile_m, k), shape=(TILE_M, TILE_K), padding_mode=ct.PaddingMode.ZERO)
        b_tile = ct.load(b, index=(k, tile_n), shape=(TILE_K, TILE_N), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a_tile, b_tile, acc)
    ct.store(c, index=(tile_m, tile_n), tile=ct.astype(acc, c.dtype))
