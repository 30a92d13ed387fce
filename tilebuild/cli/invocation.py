"""The command as it was typed. Knows no command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Invocation:
    """`folder` is where it was typed, and `typed_in`, too; `folder` is empty if the command went elsewhere
    since.
    """

    argv: Sequence[str]
    folder: str
    typed_in: str
