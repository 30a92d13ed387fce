"""How the translator says no: construct, Python line, reason and a way out. Knows no operation."""

from __future__ import annotations

from tilebuild.diagnostics import Blame, Diagnostic, Note, Span
from tilebuild.tileir.tree import Location


class Refusal(Exception):
    """A kernel that the chosen spelling cannot express. `help` is a way out, for the author of the kernel."""

    def __init__(self, fact: str, help: str, location: Location | None = None) -> None:
        super().__init__(fact)
        self.fact = fact
        self.help = help
        self.location = location

    def at(self, location: Location | None) -> Refusal:
        """The same refusal with a place, if it has none yet."""
        self.location = self.location or location
        return self

    def diagnostic(self) -> Diagnostic:
        location = self.location
        return Diagnostic(
            fact=self.fact,
            blame=Blame.KERNEL,
            span=span(location) if location else None,
            help=self.help,
            notes=tuple(Note("called from here", span(c)) for c in (location.callers if location else ())),
        )


def span(location: Location) -> Span:
    return Span(location.path, location.line, location.column)
