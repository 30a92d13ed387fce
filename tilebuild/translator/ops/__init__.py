"""What each Tile IR operation becomes in Rust: one row an operation."""

from __future__ import annotations

from collections.abc import Mapping

from tilebuild.translator.emitter import Row
from tilebuild.translator.ops import (
    arithmetic,
    control,
    conversion,
    grid,
    pointers,
    reductions,
    shapes,
    views,
)

OPS: Mapping[str, Row] = {
    **arithmetic.ROWS,
    **conversion.ROWS,
    **shapes.ROWS,
    **views.ROWS,
    **pointers.ROWS,
    **control.ROWS,
    **reductions.ROWS,
    **grid.ROWS,
}
