"""Tile IR of a cuTile Python kernel, with the Python source -> readable cuTile Rust.

Reading order: `program` (what is translated), `rungs` (how), `function` (the passes), `ops` (one row an
operation), `translation` (the file). Knows no build tool, no process and no file; `RUNGS` is cheap to
import.
"""

from tilebuild.translator.rungs import RUNGS

__all__ = ["RUNGS"]
