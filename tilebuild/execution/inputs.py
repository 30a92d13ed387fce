"""Digests of files on disk, remembered as long as the files look unchanged. Knows nothing of actions.

A file looks unchanged while its modification time, change time, size and inode are the same. A file that
was touched so recently that a second change could carry the same times is hashed anew the next time.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tilebuild.cache.digest import Digest, digest_of_file
from tilebuild.cache.sealed import read_sealed, write_sealed

Signature = tuple[int, int, int, int]

_VERSION = 1


@dataclass(frozen=True)
class FileDigest:
    digest: Digest
    executable: bool


class FileDigests:
    """`clock` is in nanoseconds since the epoch, as the times of files are."""

    def __init__(self, clock: Callable[[], int] = time.time_ns) -> None:
        self._clock = clock
        self._known: dict[str, tuple[Signature, Digest]] = {}
        self.hashed = 0

    def digest(self, path: str) -> FileDigest:
        """Raises OSError as `stat` does, IsADirectoryError for a directory."""
        now = self._clock()
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(f"{path} is a directory")
        executable = bool(status.st_mode & stat.S_IXUSR)
        signature = signature_of(status)
        known = self._known.get(path)
        if known is not None and known[0] == signature:
            return FileDigest(known[1], executable)
        digest = digest_of_file(path)
        self.hashed += 1
        if is_settled(status.st_mtime_ns, status.st_ctime_ns, now):
            self._known[path] = (signature, digest)
        else:
            self._known.pop(path, None)
        return FileDigest(digest, executable)

    def forget(self, path: str) -> None:
        self._known.pop(path, None)

    def load(self, file: Path) -> None:
        """Takes over what an earlier process saved; a file that cannot be used is ignored, since all can
        be hashed again.
        """
        data = read_sealed(file)
        if data is not None and data["version"] == _VERSION:
            self._known = {
                path: ((m, c, size, inode), Digest(hash_, length))
                for path, m, c, size, inode, hash_, length in data["files"]
            }

    def save(self, file: Path) -> None:
        rows = [[path, *signature, *digest] for path, (signature, digest) in self._known.items()]
        write_sealed(file, {"version": _VERSION, "files": rows})


def signature_of(status: os.stat_result) -> Signature:
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def is_settled(mtime_ns: int, ctime_ns: int, now_ns: int) -> bool:
    """Whether a change after `now_ns` is sure to give a file with these times other ones.

    File systems that keep whole milliseconds or less precise times may also count in steps of 2 s; the others
    step at most every 10 ms.
    """
    precise = ctime_ns % 1_000_000 != 0
    return max(mtime_ns, ctime_ns) < now_ns - (20_000_000 if precise else 2_000_000_000)
