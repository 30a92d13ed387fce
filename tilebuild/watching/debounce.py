"""When a burst of hints is over. Pure: time is an argument, in seconds of any steady clock.

Editors save in several steps, formatters follow, a checkout writes a thousand files: only silence ends a
burst, so every hint extends it. A file that never rests must not put the end off for ever.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Debounce:
    """`quiet_s` without a hint ends a burst, and so does its age of `longest_s`."""

    quiet_s: float = 0.15
    longest_s: float = 10.0
    _first: float | None = None
    _last: float = 0.0

    @property
    def pending(self) -> bool:
        return self._first is not None

    @property
    def last(self) -> float:
        """When the last hint of the burst came."""
        return self._last

    def hint(self, now: float) -> None:
        if self._first is None:
            self._first = now
        self._last = now

    def clear(self) -> None:
        self._first = None

    def remaining(self, now: float, quiet_s: float | None = None) -> float | None:
        """Seconds until the burst is over, 0 if it is; None if there is none. `quiet_s` asks for a longer
        silence than usual.
        """
        if self._first is None:
            return None
        end = min(self._last + max(quiet_s or 0.0, self.quiet_s), self._first + self.longest_s)
        return max(0.0, end - now)
