"""Progress where nobody watches: one line per action that ran or failed. Knows no terminal.

PythonIr //kernels:softmax softmax s0/sm_90 ran in 0.06 s
"""

from __future__ import annotations

from typing import TextIO

from tilebuild.events import ActionFinished, Event, PhaseStarted, Progress, RunningAction, Status
from tilebuild.reporting.text import seconds

_PATIENCE_S = 15.0
_SILENT = frozenset({"loading", "analysing"})


class LineReporter:
    """An action that takes long is mentioned every 15 s, with the last thing it said."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._mentioned: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        if isinstance(event, ActionFinished):
            if event.outcome.status in (Status.RAN, Status.FAILED):
                name = event.outcome.action.name
                self._say(f"{name} {event.outcome.status.value} in {seconds(event.outcome.seconds)}")
        elif isinstance(event, PhaseStarted) and event.text not in _SILENT:
            self._say(event.text)
        elif isinstance(event, Progress):
            for running in event.running:
                self._mention(running)

    def close(self) -> None:
        return None

    def _mention(self, running: RunningAction) -> None:
        name = running.action.name
        if running.seconds - self._mentioned.get(name, 0.0) >= _PATIENCE_S:
            self._mentioned[name] = running.seconds
            self._say(f"{name} still runs after {seconds(running.seconds)}: {running.last_line}".rstrip(": "))

    def _say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)
