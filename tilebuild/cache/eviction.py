"""What a disk store holds, and dropping what was not used for longest. Knows the layout of `disk`, nothing
of builds.

The unit of use is a result: a blob lives as long as a result that names it. Dropping needs the store for
itself, so it never takes a blob away from a build that runs.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tilebuild.cache.digest import Digest, digest_of_file
from tilebuild.cache.disk import LAYOUT
from tilebuild.cache.sealed import unseal

_DAY_S = 86_400.0


@dataclass(frozen=True)
class Usage:
    results: int
    blobs: int
    bytes: int


@dataclass(frozen=True)
class Dropped:
    results: int
    blobs: int
    bytes: int


class StoreInUse(Exception):
    """Somebody else uses the store; nothing was dropped."""


def usage(folder: str | os.PathLike[str]) -> Usage:
    root = Path(folder, LAYOUT)
    blobs = [entry.stat().st_size for entry in _files(root / "cas")]
    return Usage(sum(1 for _ in _files(root / "ac")), len(blobs), sum(blobs))


def collect(folder: str | os.PathLike[str], limit_bytes: int, age_s: float = float("inf")) -> Dropped:
    """Drops the results used longest ago until the blobs of the others fit; also those not used for
    `age_s`.
    """
    root = Path(folder, LAYOUT)
    root.mkdir(parents=True, exist_ok=True)
    lock = os.open(root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _collect(root, limit_bytes, time.time() - age_s)
    except BlockingIOError:
        raise StoreInUse from None
    finally:
        os.close(lock)


def damaged(folder: str | os.PathLike[str]) -> list[Path]:
    """Hashes every blob; returns those whose bytes are not what their name says."""
    root = Path(folder, LAYOUT)
    return [Path(e.path) for e in _files(root / "cas") if digest_of_file(e.path).hash != e.name]


def _collect(root: Path, limit_bytes: int, oldest: float) -> Dropped:
    kept: set[str] = set()
    builds: set[str] = set()
    size = 0
    results = 0
    for entry in sorted(_files(root / "ac"), key=lambda e: -e.stat().st_atime):
        named, build = _named_blobs(Path(entry.path))
        added = sum(digest.size for digest in named if digest.hash not in kept)
        if named and entry.stat().st_atime >= oldest and size + added <= limit_bytes:
            size += added
            kept |= {digest.hash for digest in named}
            builds.add(build)
        else:
            os.unlink(entry.path)
            results += 1
    blobs = freed = 0
    for entry in list(_files(root / "cas")):
        if entry.name not in kept:
            freed += entry.stat().st_size
            blobs += 1
            os.unlink(entry.path)
    _sweep(root, builds)
    return Dropped(results, blobs, freed)


def _named_blobs(path: Path) -> tuple[list[Digest], str]:
    try:
        entry = unseal(path.read_bytes())
        return [Digest(hash_, size) for _, hash_, size, _ in entry["outputs"]], entry["build"]
    except (ValueError, KeyError, TypeError):
        return [], ""


def _sweep(root: Path, builds: set[str]) -> None:
    """Marks of builds that no result names, and what a killed build left half written."""
    for mark in (root / "synced").iterdir():
        if mark.name not in builds:
            mark.unlink()
    for file in (root / "tmp").iterdir():
        if file.stat().st_mtime < time.time() - _DAY_S:
            file.unlink()


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    if not folder.is_dir():
        return
    with os.scandir(folder) as shards:
        for shard in shards:
            with os.scandir(shard.path) as entries:
                yield from entries
