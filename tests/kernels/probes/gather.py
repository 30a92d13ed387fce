"""Rows picked by an index array: the columns of a row are gathered, not loaded as a tile."""

import cuda.tile as ct


@ct.kernel
def gather_rows(table, rows, out, TILE: ct.Constant[int]):
    """out[i] = table[rows[i]]; an index outside of the table gives a row of zeros."""
    i = ct.bid(0)
    row = ct.gather(rows, i)
    columns = ct.bid(1) * TILE + ct.arange(TILE, dtype=ct.int32)
    values = ct.gather(table, (row, columns), padding_value=0.0)
    ct.scatter(out, (i, columns), values)
