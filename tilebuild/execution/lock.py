"""One build of a workspace at a time. Knows no build.

The lock dies with its process, however that ends; the file says who holds it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_INTERVAL_S = 0.1


class LockHeld(Exception):
    """Another build did not end in time; its description is the argument."""


@contextlib.contextmanager
def locked(path: Path, patience_s: float, waiting: Callable[[str], None]) -> Iterator[None]:
    """Holds the lock; `waiting` is told once who has it if it is not free. Raises LockHeld."""
    with open(path, "a+", encoding="utf-8") as file:
        _acquire(file.fileno(), path, patience_s, waiting)
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        yield


def _acquire(descriptor: int, path: Path, patience_s: float, waiting: Callable[[str], None]) -> None:
    deadline = time.monotonic() + patience_s
    told = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder = path.read_text(encoding="utf-8") or "another process"
        if time.monotonic() >= deadline:
            raise LockHeld(holder)
        if not told:
            waiting(holder)
            told = True
        time.sleep(_INTERVAL_S)
