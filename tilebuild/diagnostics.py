"""What can be wrong and where: the one shape of every message. Knows neither how messages are shown nor who
raises them.

A `Diagnostic` travels as data, also between processes: tools write them as JSON, the engine shows them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any


class Blame(Enum):
    """Whose fault a problem is; decides which file the reader opens first."""

    KERNEL = "kernel"
    BUILD_FILE = "BUILD file"
    TOOLCHAIN = "toolchain"
    TILEBUILD = "tilebuild"


@dataclass(frozen=True, order=True)
class Span:
    """A place in a text file: path relative to the workspace where possible; lines and columns count from 1.

    `end_column` is exclusive and lies on the same line; 0 means unknown.
    """

    path: str
    line: int = 0
    column: int = 0
    end_column: int = 0

    def __str__(self) -> str:
        place = self.path
        if self.line:
            place += f":{self.line}"
            if self.column:
                place += f":{self.column}"
        return place


@dataclass(frozen=True)
class Note:
    """A second place that helps to understand the first."""

    message: str
    span: Span | None = None
    source: str = ""


@dataclass(frozen=True)
class Diagnostic:
    """One problem: place, blame, fact, source line with caret, help."""

    fact: str
    blame: Blame
    span: Span | None = None
    source: str = ""
    help: str = ""
    notes: tuple[Note, ...] = ()

    def render(self) -> str:
        """The text a person reads; several lines, no trailing newline."""
        head = f"{self.blame.value} error: {self.fact}"
        lines = [f"{self.span}: {head}" if self.span else head]
        lines += _excerpt(self.span, self.source)
        for note in self.notes:
            lines.append(f"  note: {note.span}: {note.message}" if note.span else f"  note: {note.message}")
            lines += _excerpt(note.span, note.source)
        lines += [
            f"  help: {line}" if i == 0 else f"        {line}"
            for i, line in enumerate(self.help.splitlines())
        ]
        return "\n".join(lines)

    def with_source(self, lines: Sequence[str]) -> Diagnostic:
        """The same diagnostic with its source line taken from the lines of the file at fault."""
        if self.source or self.span is None or not 0 < self.span.line <= len(lines):
            return self
        return replace(self, source=lines[self.span.line - 1])

    def to_json(self) -> dict[str, Any]:
        return {
            "fact": self.fact,
            "blame": self.blame.value,
            "span": _span_to_json(self.span),
            "source": self.source,
            "help": self.help,
            "notes": [
                {"message": n.message, "span": _span_to_json(n.span), "source": n.source} for n in self.notes
            ],
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> Diagnostic:
        return Diagnostic(
            fact=data["fact"],
            blame=Blame(data["blame"]),
            span=_span_from_json(data.get("span")),
            source=data.get("source", ""),
            help=data.get("help", ""),
            notes=tuple(
                Note(n["message"], _span_from_json(n.get("span")), n.get("source", ""))
                for n in data.get("notes", ())
            ),
        )


class DiagnosticError(Exception):
    """Raised with everything that is wrong; whoever catches it shows all of it."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__("\n".join(d.render() for d in diagnostics))
        self.diagnostics = diagnostics


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """`did you mean 'x'?` for the nearest candidate, or the empty string."""
    near = difflib.get_close_matches(word, list(candidates), n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else ""


def _excerpt(span: Span | None, source: str) -> list[str]:
    if not source.strip():
        return []
    text = source.rstrip("\n").expandtabs(4)
    indent = len(text) - len(text.lstrip())
    lines = [f"    {text.strip()}"]
    if span is not None and span.column:
        # Tabs before the caret were expanded above; count the column in the expanded text.
        start = len(source[: span.column - 1].expandtabs(4)) - indent
        width = max(1, span.end_column - span.column)
        if 0 <= start <= len(text):
            lines.append(" " * (4 + start) + "^" * min(width, max(1, len(text.strip()) - start)))
    return lines


def _span_to_json(span: Span | None) -> list[Any] | None:
    return None if span is None else [span.path, span.line, span.column, span.end_column]


def _span_from_json(data: list[Any] | None) -> Span | None:
    return None if data is None else Span(data[0], data[1], data[2], data[3])
