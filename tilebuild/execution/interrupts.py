"""Turns Ctrl-C and a polite kill into a flag and something to select on. Knows nothing of what is
interrupted.

The first signal asks for an orderly end; a second Ctrl-C raises KeyboardInterrupt where the program stands.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """Handlers are installed while the context is entered, in the main thread; elsewhere nothing is ever
    requested.
    """

    def __init__(self) -> None:
        self.requested = False
        self.reading, self._writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.reading)
        os.close(self._writing)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.requested = True
        os.write(self._writing, b"!")
