"""Vector addition: the smallest kernel that loads, computes and stores."""

import cuda.tile as ct


@ct.kernel
def vector_add(a, b, c, TILE: ct.Constant[int]):
    """c = a + b, one tile per block."""
    block = ct.bid(0)
    a_tile = ct.load(a, index=(block,), shape=(TILE,), padding_mode=ct.PaddingMode.ZERO)
    b_tile = ct.load(b, index=(block,), shape=(TILE,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(c, index=(block,), tile=a_tile + b_tile)
