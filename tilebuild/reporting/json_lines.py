"""Every event as one line of JSON on standard output, for programs. Knows no text for people."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TextIO

from tilebuild.diagnostics import Diagnostic
from tilebuild.events import EVENT_VERSION, Event, Progress


class JsonReporter:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __call__(self, event: Event) -> None:
        if not isinstance(event, Progress):
            self.write(event.to_json())

    def close(self) -> None:
        return None

    def write(self, data: dict[str, Any]) -> None:
        print(json.dumps(data, separators=(",", ":")), file=self._stream, flush=True)


def failure_event(diagnostics: Iterable[Diagnostic], exit_code: int) -> dict[str, Any]:
    """What is said instead of a report when a command could not even begin."""
    return {
        "version": EVENT_VERSION,
        "event": "error",
        "exit_code": exit_code,
        "diagnostics": [diagnostic.to_json() for diagnostic in diagnostics],
    }
