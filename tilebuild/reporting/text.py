"""Small pieces of text that all reports share: counts, durations, columns, colours. Knows no event and
no report.
"""

from __future__ import annotations

from collections.abc import Sequence


def seconds(value: float) -> str:
    """A duration as people read it: `0.03 s`, `4.1 s`, `2 min 5 s`."""
    if value < 0.995:
        return f"{value:.2f} s"
    if value < 59.95:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def columns(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset(), gap: str = "  ") -> list[str]:
    """Lines with aligned cells; the columns in `right` are aligned to the right."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        gap.join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


class Style:
    """Colours on a terminal that wants them, nothing elsewhere."""

    def __init__(self, coloured: bool) -> None:
        self._coloured = coloured

    def good(self, text: str) -> str:
        return self._paint(text, "32")

    def bad(self, text: str) -> str:
        return self._paint(text, "1;31")

    def faint(self, text: str) -> str:
        return self._paint(text, "2")

    def strong(self, text: str) -> str:
        return self._paint(text, "1")

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._coloured else text
