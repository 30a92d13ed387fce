"""Progress on a terminal: one region that is rewritten, showing what runs now. Knows no report."""

from __future__ import annotations

import shutil
import time
from typing import TextIO

from tilebuild.events import ActionFinished, Event, PhaseStarted, Progress, RunningAction, Status
from tilebuild.reporting.text import Style, seconds

_SHOWN = 6
_MIN_INTERVAL_S = 0.08


class LiveReporter:
    def __init__(self, stream: TextIO, style: Style) -> None:
        self._stream = stream
        self._style = style
        self._height = 0
        self._drawn_at = 0.0
        self._hits = 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, PhaseStarted):
            self._draw([f"{event.text} …"])
        elif isinstance(event, Progress):
            if time.monotonic() - self._drawn_at >= _MIN_INTERVAL_S:
                self._draw(self._region(event))
        elif isinstance(event, ActionFinished):
            self._hits += event.outcome.status is Status.HIT
            if event.outcome.status is Status.FAILED:
                action = event.outcome.action
                self._draw([])
                self._stream.write(
                    self._style.bad(f"failed: {action.mnemonic} {action.label} {action.detail}\n")
                )

    def close(self) -> None:
        self._draw([])

    def _region(self, progress: Progress) -> list[str]:
        cached = f", {self._hits} cached" if self._hits else ""
        lines = [self._style.strong(f"[{progress.done}/{progress.total}]") + f" actions done{cached}"]
        running = sorted(progress.running, key=lambda action: -action.seconds)
        lines += [self._line(action) for action in running[:_SHOWN]]
        if len(running) > _SHOWN:
            lines.append(f"    and {len(running) - _SHOWN} more")
        return lines

    def _line(self, running: RunningAction) -> str:
        action = running.action
        name = f"    {action.mnemonic} {action.label} {action.detail}".rstrip()
        said = f"  {running.last_line}" if running.last_line and running.seconds > 1 else ""
        return f"{name}  {seconds(running.seconds)}{said}"

    def _draw(self, lines: list[str]) -> None:
        width = shutil.get_terminal_size().columns - 1
        erase = f"\x1b[{self._height}A\x1b[J" if self._height else ""
        # A line with colours is never longer than the terminal; the others are cut to fit.
        text = "".join((line if "\x1b" in line else line[:width]) + "\n" for line in lines)
        self._stream.write(erase + text)
        self._stream.flush()
        self._height = len(lines)
        self._drawn_at = time.monotonic()
