"""Tells a person who saves from a program that writes whenever something is built. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass
class Loops:
    """A file that changes during so many builds in a row is suspect; nobody saves at every one of them."""

    suspicious: int = 8
    _rows: dict[str, int] = field(default_factory=dict)

    def note(self, changed: Collection[str], during_build: bool) -> str:
        """What the next build is for, and whether that happened while the one before ran; the path of a file
        that has just become suspect, or the empty string.
        """
        self._rows = {path: self._rows.get(path, 0) + 1 for path in changed} if during_build else {}
        return next((path for path in sorted(changed) if self._rows.get(path) == self.suspicious), "")
