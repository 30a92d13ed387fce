"""Notices what changes, in a thread of its own, while a build runs and between builds. Knows no build: only
what one depends on and how to ask it to stop.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from tilebuild.watching.debounce import Debounce
from tilebuild.watching.hints import Hints, PollingHints, refusal
from tilebuild.watching.snapshot import EMPTY, Change, Contents, Scope, changes, extended, take

#: A file that is gone may come back: editors move the old one away before they write the new one.
_GONE_QUIET_S = 0.6


@dataclass(frozen=True)
class News:
    """What changed since the build before began, and when, by the clock of the sentinel."""

    changes: tuple[Change, ...]
    noticed: float


class Sentinel:
    """`contents` is called under a lock; `tell` gets what a person should know, in words.

    Use `start` for the thread; without it `step` does the same, one round at a time.
    """

    def __init__(
        self,
        hints: Hints,
        contents: Contents,
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        debounce: Debounce | None = None,
    ) -> None:
        self._hints = hints
        self._contents = contents
        self._tell = tell
        self._clock = clock
        self._debounce = debounce or Debounce()
        self._scope = Scope()
        self._baseline = EMPTY
        self._found: dict[str, Change] = {}
        self._noticed = 0.0
        self._cancel: Callable[[], None] | None = None
        self._broken: BaseException | None = None
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._waking, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="sentinel", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stopping = True
        self._nudge()
        if self._thread is not None:
            self._thread.join()
        self._hints.close()
        os.close(self._waking)
        os.close(self._wake)

    # For the one who builds

    def building(self, cancel: Callable[[], None] | None) -> None:
        """A build begins, which a change shall cancel; None: it has ended."""
        with self._news:
            self._cancel = cancel
            if cancel is not None and self._found:
                cancel()

    def adopt(self, scope: Scope, *, complete: bool) -> None:
        """What the build that runs depends on. One that is not complete adds to what is known."""
        with self._news:
            self._scope = scope if complete else self._scope | scope
            self._baseline, restless = extended(self._baseline, self._scope, self._contents)
            self._cover()
            self._debounce.hint(self._clock())  # between the reading and now there were no events
            if restless:
                self._report(restless, self._clock())
        self._nudge()

    def wait(self) -> News:
        """Returns when something has changed since the last build began."""
        with self._news:
            while not self._found:
                if self._broken is not None:
                    raise self._broken
                self._news.wait()
            news = News(tuple(sorted(self._found.values())), self._noticed)
            self._found = {}
            return news

    # The rounds

    def step(self) -> float:
        """Looks whether something has changed; in how many seconds to look again without a hint."""
        with self._news:
            now = self._clock()
            if self._hints.arrived(now):
                self._debounce.hint(now)
            remaining = self._debounce.remaining(now)
            if remaining == 0.0:
                remaining = self._compare(now)
            return self._hints.interval_s if remaining is None else min(remaining, self._hints.interval_s)

    def _compare(self, now: float) -> float | None:
        after = take(self._scope, self._contents)
        found = changes(self._baseline, after)
        if any(change.kind == "gone" for change in found):
            remaining = self._debounce.remaining(now, _GONE_QUIET_S)
            if remaining:
                return remaining
        noticed = self._debounce.last
        self._debounce.clear()
        if self._cover():
            self._debounce.hint(now)  # a folder came back: what happened in it before is not known
        if found:
            self._baseline = after
            self._report(found, noticed)
        return self._debounce.remaining(now)

    def _report(self, found: tuple[Change, ...], noticed: float) -> None:
        self._noticed = noticed
        self._found.update({change.path: change for change in found})
        self._news.notify_all()
        if self._cancel is not None:
            self._cancel()

    def _cover(self) -> bool:
        try:
            return self._hints.cover(self._scope)
        except OSError as error:
            self._hints.close()
            self._hints = PollingHints()
            self._tell(f"{refusal(error)}. Until then files are looked at twice a second")
            return self._hints.cover(self._scope)

    def _run(self) -> None:
        try:
            timeout = 0.0
            while not self._stopping:
                descriptor = self._hints.fileno()
                sources = [self._waking, *([] if descriptor is None else [descriptor])]
                waiting = select.poll()
                for source in sources:
                    waiting.register(source, select.POLLIN)
                if any(ready == self._waking for ready, _ in waiting.poll(timeout * 1000)):
                    os.read(self._waking, 4096)
                timeout = self.step()
        except BaseException as error:  # whoever waits must not wait for ever
            with self._news:
                self._broken = error
                self._news.notify_all()

    def _nudge(self) -> None:
        try:
            os.write(self._wake, b"!")
        except BlockingIOError:
            return  # it is awake already
