"""The kernel's inotify: something happened in a folder. Knows nothing of what is watched, or why.

Bound directly: the event that says that events were lost must not be dropped on the way, one descriptor
serves all folders, and no thread is needed.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass

MODIFY = 0x2
ATTRIB = 0x4
CLOSE_WRITE = 0x8
MOVED_FROM = 0x40
MOVED_TO = 0x80
CREATE = 0x100
DELETE = 0x200
DELETE_SELF = 0x400
MOVE_SELF = 0x800
UNMOUNT = 0x2000
OVERFLOW = 0x4000
IGNORED = 0x8000

_WANTED = MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF
_ONLYDIR = 0x01000000
_HEAD = struct.Struct("iIII")
_BUFFER = 1 << 16


@dataclass(frozen=True)
class Event:
    """`name` is an entry of the folder; empty when the event is about the folder itself."""

    name: str
    mask: int


class Inotify:
    """Raises OSError where the kernel refuses: EMFILE for one instance too many."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        try:
            init = self._libc.inotify_init1
        except AttributeError:
            raise OSError(38, "this system has no inotify") from None
        self._descriptor = _checked(init(os.O_CLOEXEC | os.O_NONBLOCK))
        self._folders: dict[int, str] = {}

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        os.close(self._descriptor)

    def cover(self, folders: Iterable[str]) -> bool:
        """Watches these folders, as far as they exist, and no others; whether any is watched anew.

        Raises OSError, ENOSPC if there are more than the system allows.
        """
        found: dict[int, str] = {}
        for folder in folders:
            try:
                found[self._add(folder)] = folder
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                continue  # the folder above is watched, and tells when this one comes
        for number in self._folders.keys() - found.keys():
            self._libc.inotify_rm_watch(self._descriptor, number)  # may be gone with its folder
        anew = bool(found.keys() - self._folders.keys())
        self._folders = found
        return anew

    def read(self) -> list[Event]:
        """All events that are waiting; does not block."""
        events: list[Event] = []
        while True:
            try:
                data = os.read(self._descriptor, _BUFFER)
            except BlockingIOError:
                return events
            at = 0
            while at < len(data):
                number, mask, _, length = _HEAD.unpack_from(data, at)
                name = data[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0")
                at += _HEAD.size + length
                if mask & IGNORED:
                    self._folders.pop(number, None)
                events.append(Event(os.fsdecode(name), mask))

    def _add(self, folder: str) -> int:
        path = ctypes.c_char_p(os.fsencode(folder))
        return _checked(self._libc.inotify_add_watch(self._descriptor, path, _WANTED | _ONLYDIR), folder)


def _checked(result: int, path: str | None = None) -> int:
    if result >= 0:
        return result
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number), path)
