"""From a line of a generated port to the Python line it came from. Knows no compiler."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

from tilebuild.diagnostics import Blame, Diagnostic, Note, Span


class LineMap:
    """`rows` are `(Rust line, Python path, Python line)`; a line between two rows belongs to the one
    before."""

    def __init__(self, rows: Sequence[tuple[int, str, int]]) -> None:
        self._rows = sorted(rows)
        self._lines = [row[0] for row in self._rows]

    @staticmethod
    def read(file: Path) -> LineMap:
        """An absent or empty file maps nothing: a port written by hand has none."""
        text = file.read_text() if file.exists() else ""
        return LineMap(
            [(line, path, python) for line, path, python in json.loads(text)["lines"]] if text else []
        )

    def python(self, rust_line: int) -> Span | None:
        index = bisect_right(self._lines, rust_line)
        if not rust_line or not index:
            return None
        _, path, line = self._rows[index - 1]
        return Span(path, line)

    def diagnostic(self, fact: str, rust: Span, source: str, help: str = "") -> Diagnostic:
        """A problem in a port: shown at the Python line if there is one, with the Rust line as a note."""
        place = self.python(rust.line)
        if place is None:
            return Diagnostic(fact, Blame.TILEBUILD, rust, source, help)
        return Diagnostic(fact, Blame.TILEBUILD, place, help=help, notes=(Note("in the port", rust, source),))
