"""Where the word comes from that something may have changed: events of the kernel, or looking again and
again. Knows no build.

A hint is never proof: who gets one compares contents. Nor is silence proof, so even events are backed by a
look now and then.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Protocol

from tilebuild.watching import inotify
from tilebuild.watching.editors import is_transient
from tilebuild.watching.snapshot import Scope, signature

#: File systems that tell nothing of what other machines do, or nothing at all.
_SILENT = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "drvfs",
        "vboxsf",
        "vmhgfs",
        "afs",
        "ceph",
        "lustre",
        "gpfs",
    }
)
_WRITES = inotify.MODIFY | inotify.CLOSE_WRITE | inotify.ATTRIB
_ABOUT_FOLDER = inotify.DELETE_SELF | inotify.MOVE_SELF | inotify.UNMOUNT
_LIMITS = {errno.ENOSPC: "max_user_watches", errno.EMFILE: "max_user_instances"}


class Hints(Protocol):
    """`interval_s` is how often `arrived` has to be asked although `fileno` is silent."""

    interval_s: float

    def fileno(self) -> int | None:
        """Becomes readable when `arrived` has something to say; None if it never does."""

    def cover(self, scope: Scope) -> bool:
        """From now on the hints are about this scope; whether something may have been missed until now.

        Raises OSError.
        """

    def arrived(self, now: float) -> bool:
        """Whether something may have changed since the last call."""

    def close(self) -> None: ...


class EventHints:
    """Events of the kernel, and every half minute one look for what they missed."""

    interval_s = 30.0

    def __init__(self, root: str) -> None:
        """Raises OSError where the kernel has no events for us."""
        self._root = root
        self._inotify = inotify.Inotify()
        self._names: frozenset[str] = frozenset()
        self._looked = 0.0

    def fileno(self) -> int | None:
        return self._inotify.fileno()

    def cover(self, scope: Scope) -> bool:
        self._names, folders = scope.places(self._root)
        return self._inotify.cover(folders)

    def arrived(self, now: float) -> bool:
        found = any(self._matters(event) for event in self._inotify.read())
        if found or now - self._looked >= self.interval_s:
            self._looked = now
            return True
        return False

    def close(self) -> None:
        self._inotify.close()

    def _matters(self, event: inotify.Event) -> bool:
        if event.mask & (inotify.OVERFLOW | _ABOUT_FOLDER):
            return True
        if event.name in self._names:
            return True
        if event.mask & (_WRITES | inotify.IGNORED):
            return False  # a file that nothing reads; a folder that we left ourselves
        return not is_transient(event.name)


class PollingHints:
    """Looks at every file and folder, where the kernel tells nothing."""

    def __init__(self, interval_s: float = 0.5) -> None:
        self.interval_s = interval_s
        self._scope = Scope()
        self._last: tuple[object, ...] = ()

    def fileno(self) -> int | None:
        return None

    def cover(self, scope: Scope) -> bool:
        anew = scope.files != self._scope.files or scope.folders != self._scope.folders
        self._scope = scope
        if anew:
            self._last = signature(scope)
        return anew

    def arrived(self, now: float) -> bool:
        found = signature(self._scope)
        changed = found != self._last
        self._last = found
        return changed

    def close(self) -> None:
        return None


def refusal(error: OSError) -> str:
    """Why there are no events, and what would bring them."""
    limit = _LIMITS.get(error.errno or 0)
    if limit is None:
        return f"no events from the kernel: {error.strerror}"
    file = Path("/proc/sys/fs/inotify", limit)
    value = file.read_text().strip() if file.exists() else "unknown"
    raising = f"sudo sysctl fs.inotify.{limit}=524288"
    return f"the limit fs.inotify.{limit} ({value}) is reached; to raise it: {raising}"


def silent_file_system(folder: str, mounts: str = "/proc/self/mountinfo") -> str:
    """The type of the file system that holds a folder, if that is one which tells nothing; else empty."""
    try:
        lines = Path(mounts).read_text().splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for line in lines:
        mounted, _, about = line.partition(" - ")
        point = mounted.split()[4].replace("\\040", " ")
        if Path(folder).is_relative_to(point) and len(point) >= len(best):
            best, kind = point, about.split()[0]
    return kind if kind in _SILENT or kind.startswith("fuse.") else ""
