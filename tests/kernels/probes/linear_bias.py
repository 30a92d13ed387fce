"""Matrix multiplication with an epilogue: a bias per column, then a rectifier."""

import cuda.tile as ct


@ct.kernel
def linear_bias_relu(
    x, weight, bias, out, TILE_M: ct.Constant[int], TILE_N: ct.Constant[int], TILE_K: ct.Constant[int]
):
    """out = max(x @ weight.T + bias, 0)."""
    tile_m, tile_n = ct.bid(0), ct.bid(1)
    acc = ct.full((TILE_M, TILE_N), 0.0, dtype=ct.float32)
    for k in range(ct.cdiv(x.shape[1], TILE_K)):
        x_tile = ct.load(x, (tile_m, k), (TILE_M, TILE_K), padding_mode=ct.PaddingMode.ZERO)
        w_tile = ct.load(weight, (tile_n, k), (TILE_N, TILE_K), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(x_tile, ct.transpose(w_tile), acc)
    bias_tile = ct.load(bias, (tile_n,), (TILE_N,))
    acc = ct.maximum(acc + bias_tile[None, :].astype(ct.float32), 0.0)
    ct.store(out, (tile_m, tile_n), acc.astype(out.dtype))
