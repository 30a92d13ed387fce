"""Softmax over the rows of a matrix; a row fits into one tile, and blocks stride over the rows."""

import cuda.tile as ct


@ct.kernel(occupancy=2)
def softmax(x, out, n_rows: int, TILE: ct.Constant[int]):
    """out[row] = softmax(x[row]) for every row, computed in float32."""
    for row in range(ct.bid(0), n_rows, ct.num_blocks(0)):
        # Beyond the end of a row lies minus infinity: never the maximum, and its exponential is zero.
        logits = ct.load(x, index=(row, 0), shape=(1, TILE), padding_mode=ct.PaddingMode.NEG_INF)
        logits = ct.astype(logits, ct.float32)
        row_max = ct.max(logits, axis=1, keepdims=True)
        numerator = ct.exp(logits - row_max)
        denominator = ct.sum(numerator, axis=1, keepdims=True)
        ct.store(out, index=(row, 0), tile=ct.astype(numerator / denominator, out.dtype))
