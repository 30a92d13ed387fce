"""The tier on the local disk: one file per blob, one per result. Knows nothing of actions, workspaces or
other tiers.

    v1/cas/ab/<sha256>   the bytes, read-only; outputs of builds are hard links to it
    v1/ac/ab/<sha256>    the result, sealed, written after its blobs
    v1/synced/<build>    this build's files have reached the disk
    v1/tmp/              files being written, renamed into place when complete
    v1/lock              held shared by all users of the store, exclusively while old results are dropped

Nothing is synced one by one: `kill -9` needs no sync, since the kernel has the data. A power cut may lose
or tear files that were not on the disk yet, so each result names the boot and the build it was written in;
after another boot the blobs of a build without a mark are hashed before they are trusted. A result also
holds the modification time of each blob: a blob edited in place (through one of its links) is hashed again,
and dropped when it is not what its name says.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import itertools
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tilebuild.cache.digest import Digest, digest_of_bytes, digest_of_file
from tilebuild.cache.sealed import seal, unseal
from tilebuild.cache.store import ActionResult

LAYOUT = "v1"
_SCHEMA = 2
_HOUR_NS = 3_600_000_000_000


class DiskStore:
    """Both a blob store and a result store; `get` answers only with results whose blobs are here and
    whole.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.root = Path(folder, LAYOUT)
        self.bytes_added = 0
        self._build = os.urandom(8).hex()
        self._boot = _boot_id()
        self._trusted: dict[Digest, int] = {}
        self._names = itertools.count()
        for name in ("cas", "ac", "tmp", "synced"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(self._lock, fcntl.LOCK_SH)

    # Blobs

    def missing(self, digests: Iterable[Digest]) -> set[Digest]:
        return {digest for digest in digests if not self._is_present(digest)}

    def read(self, digest: Digest) -> bytes | None:
        try:
            data = self.blob_path(digest).read_bytes()
        except OSError:
            return None
        if digest_of_bytes(data) == digest:
            return data
        self.discard(digest)
        return None

    def fetch(self, digest: Digest, destination: str, executable: bool = False) -> bool:
        if not self._is_sound(digest):
            return False
        blob = self.blob_path(digest)
        try:
            if executable or not _link(blob, destination):
                _copy(blob, destination, 0o555 if executable else 0o444)
        except FileNotFoundError:
            if os.path.isdir(os.path.dirname(destination)):
                return False  # the blob went away just now
            raise
        return True

    def add(self, data: bytes) -> Digest:
        digest = digest_of_bytes(data)
        if not self._is_sound(digest):
            with self._new_file(self.blob_path(digest)) as path:
                path.write_bytes(data)
                path.chmod(0o444)
            self._trust(digest)
        return digest

    def add_file(self, path: str, digest: Digest) -> None:
        if self._is_sound(digest):
            return
        blob = self.blob_path(digest)
        linkable = os.stat(path).st_mode & 0o333 == 0  # neither writable nor executable
        if not (linkable and self._adopt(path, blob)):
            with self._new_file(blob) as copy:
                _copy(path, copy, 0o444)
        self._trust(digest)

    def discard(self, digest: Digest) -> None:
        """Drops a blob; results that name it become misses."""
        self._trusted.pop(digest, None)
        self.blob_path(digest).unlink(missing_ok=True)

    def blob_path(self, digest: Digest) -> Path:
        return self.root / "cas" / digest.hash[:2] / digest.hash

    # Results

    def get(self, key: Digest) -> ActionResult | None:
        path = self.result_path(key)
        try:
            entry = unseal(path.read_bytes())
            result = ActionResult.from_json(entry)
            stamps = dict(zip((o.digest for o in result.outputs), entry["stamps"], strict=True))
            current = entry["schema"] == _SCHEMA and entry["key"] == str(key)
        except OSError:
            return None
        except (ValueError, KeyError, TypeError):
            current = False
        if not current:
            path.unlink(missing_ok=True)
            return None
        durable = entry["boot"] == self._boot or (self.root / "synced" / entry["build"]).exists()
        if not all(self._is_sound(digest, stamp if durable else 0) for digest, stamp in stamps.items()):
            return None
        if not durable:
            self.put(key, result)
        _mark_used(path)
        return result

    def put(self, key: Digest, result: ActionResult) -> None:
        entry: dict[str, Any] = {
            "schema": _SCHEMA,
            "key": str(key),
            "boot": self._boot,
            "build": self._build,
            **result.to_json(),
            "stamps": [self.blob_path(o.digest).stat().st_mtime_ns for o in result.outputs],
        }
        with self._new_file(self.result_path(key)) as path:
            path.write_bytes(seal(entry))

    def result_path(self, key: Digest) -> Path:
        return self.root / "ac" / key.hash[:2] / key.hash

    # The store as a whole

    def sync(self) -> None:
        """Brings all that this build wrote to the disk, then says so."""
        if not self.bytes_added:
            return
        fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if ctypes.CDLL(None, use_errno=True).syncfs(fd) == 0:
                (self.root / "synced" / self._build).touch()
        finally:
            os.close(fd)

    def close(self) -> None:
        os.close(self._lock)

    def _is_present(self, digest: Digest) -> bool:
        try:
            return os.stat(self.blob_path(digest)).st_size == digest.size
        except OSError:
            return False

    def _is_sound(self, digest: Digest, stamp: int = 0) -> bool:
        """Whether the blob is here with the right bytes; hashes only what neither `stamp` nor this
        process vouches for.
        """
        path = self.blob_path(digest)
        try:
            status = os.stat(path)
            if status.st_size == digest.size:
                if status.st_mtime_ns in (stamp, self._trusted.get(digest)):
                    self._trusted[digest] = status.st_mtime_ns
                    return True
                if digest_of_file(path) == digest:
                    self._trusted[digest] = status.st_mtime_ns
                    return True
        except OSError:
            return False
        self.discard(digest)
        return False

    def _adopt(self, path: str, blob: Path) -> bool:
        """Makes the file itself the blob; False where links are impossible."""
        try:
            return _link(path, blob)
        except FileExistsError:
            return True  # somebody else has just stored it
        except FileNotFoundError:
            if blob.parent.is_dir():
                raise
        blob.parent.mkdir(exist_ok=True)
        return self._adopt(path, blob)

    def _trust(self, digest: Digest) -> None:
        self._trusted[digest] = os.stat(self.blob_path(digest)).st_mtime_ns
        self.bytes_added += digest.size

    @contextlib.contextmanager
    def _new_file(self, destination: Path) -> Iterator[Path]:
        temporary = self.root / "tmp" / f"{os.getpid()}-{self._build}-{next(self._names)}"
        try:
            yield temporary
            try:
                os.rename(temporary, destination)
            except FileNotFoundError:
                destination.parent.mkdir(exist_ok=True)
                os.rename(temporary, destination)
        finally:
            temporary.unlink(missing_ok=True)


def _boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def _link(source: str | os.PathLike[str], destination: str | os.PathLike[str]) -> bool:
    """False where a link is impossible: another file system, too many links, a system that forbids it."""
    try:
        os.link(source, destination)
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:
        return False
    return True


def _copy(source: str | os.PathLike[str], destination: str | os.PathLike[str], mode: int) -> None:
    shutil.copyfile(source, destination)
    os.chmod(destination, mode)


def _mark_used(path: Path) -> None:
    """Sets the access time, by which old results are dropped; at most hourly, since it costs a write."""
    now = time.time_ns()
    status = path.stat()
    if now - status.st_atime_ns > _HOUR_NS:
        os.utime(path, ns=(now, status.st_mtime_ns))
