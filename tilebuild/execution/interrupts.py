"""Turns Ctrl-C, a polite kill and a request of another thread into a flag and something to select on. Knows
nothing of what is interrupted.

The first signal asks for an orderly end; a second Ctrl-C raises KeyboardInterrupt where the program stands.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any


class Cancellation:
    """Asks one build to end, from any thread and at any time: also before it has begun or after its end."""

    def __init__(self) -> None:
        self.requested = False
        self._lock = threading.Lock()
        self._wake: Callable[[], None] | None = None

    def request(self) -> None:
        with self._lock:
            if not self.requested and self._wake is not None:
                self._wake()
            self.requested = True

    def attach(self, wake: Callable[[], None] | None) -> None:
        """`wake` is called when the end is requested, at once if it has been."""
        with self._lock:
            self._wake = wake
            if self.requested and wake is not None:
                wake()


class Interrupts:
    """Handlers of signals are installed while the context is entered, in the main thread; elsewhere only
    `cancellation` requests anything.
    """

    def __init__(self, cancellation: Cancellation | None = None) -> None:
        self.requested = False
        self._cancellation = cancellation
        self.reading, self._writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        if self._cancellation is not None:
            self._cancellation.attach(self._request)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._cancellation is not None:
            self._cancellation.attach(None)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.reading)
        os.close(self._writing)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._request()

    def _request(self) -> None:
        self.requested = True
        os.write(self._writing, b"!")
