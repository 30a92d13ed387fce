"""Digests of files, remembered in the user's cache by what `stat` says of them. Knows no tool.

Reading a compiler of 100 MB takes longer than most builds; a file whose size, time and inode are unchanged is
not read again.
"""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from tilebuild.cache.digest import digest_of_file
from tilebuild.cache.sealed import read_sealed, write_sealed

_FILE = "toolchain.json"


def cache_folder() -> Path:
    """The user's cache for this program: `$XDG_CACHE_HOME/tilebuild`."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "tilebuild"


class Memory:
    """What was computed from files, by path; an entry counts while the file's `stat` is the same."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._entries: dict[str, list[Any]] = {}
        self._changed = False
        self._entries.update(read_sealed(file) or {})

    def digest(self, path: Path) -> str:
        """SHA-256 of the file's content, in hex. Raises OSError as `open` does."""
        stamp = _stamp(path)
        entry = self._entries.get(str(path))
        if entry is None or entry[0] != stamp:
            entry = [stamp, digest_of_file(path).hash]
            self._entries[str(path)] = entry
            self._changed = True
        found: str = entry[1]
        return found

    def facts(self, path: Path) -> Any:
        """What `remember` noted for this state of the file; None if nothing."""
        entry = self._entries.get(str(path))
        return entry[2] if entry is not None and len(entry) > 2 and entry[0] == _stamp(path) else None

    def remember(self, path: Path, facts: Any) -> None:
        self._entries[str(path)] = [_stamp(path), self.digest(path), facts]
        self._changed = True

    def save(self) -> None:
        """Another process may save at the same time: one of the two is lost, which costs time only."""
        if not self._changed:
            return
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_sealed(self._file, self._entries)
            self._changed = False


def _stamp(path: Path) -> list[int]:
    status = os.stat(path)
    return [status.st_size, status.st_mtime_ns, status.st_ino]


memory = Memory(cache_folder() / _FILE)
atexit.register(memory.save)
