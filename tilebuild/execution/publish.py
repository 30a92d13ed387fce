"""Keeps the output folder equal to what was built. Knows the store and file digests, no actions.

Published files are read-only. A file that is right already is left alone, with its inode and its times;
whatever else stands in the way is replaced, since the folder is ours.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from tilebuild.cache.digest import Digest
from tilebuild.cache.sealed import read_sealed, write_sealed
from tilebuild.cache.store import BlobStore
from tilebuild.execution.inputs import FileDigests


class Publisher:
    def __init__(self, root: Path, blobs: BlobStore, digests: FileDigests) -> None:
        self._root = root
        self._blobs = blobs
        self._digests = digests

    def publish(self, path: str, digest: Digest, executable: bool = False) -> bool:
        """False if the store does not have the content."""
        target = self._root / path
        if self._is_right(target, digest, executable):
            return True
        _make_room(self._root, target)
        temporary = target.with_name(f".{target.name}.new")
        temporary.unlink(missing_ok=True)
        if not self._blobs.fetch(digest, str(temporary), executable):
            return False
        os.replace(temporary, target)
        return True

    def withdraw(self, paths: Iterable[str]) -> None:
        """Removes files, and folders that are empty then."""
        for path in paths:
            target = self._root / path
            target.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # not empty: something else lives there
                for parent in target.parents:
                    if parent == self._root:
                        break
                    parent.rmdir()

    def _is_right(self, target: Path, digest: Digest, executable: bool) -> bool:
        if target.is_symlink():
            return False
        try:
            found = self._digests.digest(str(target))
        except OSError:
            return False
        return found.digest == digest and found.executable == executable


class Manifest:
    """Which files each target has in the output folder, so that those it no longer makes can go."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._files: dict[str, list[str]] = read_sealed(file) or {}

    def replace(self, files: Mapping[str, Collection[str]]) -> list[str]:
        """Records the files of targets; returns those they had before that nobody has now."""
        before = [path for label in files for path in self._files.get(label, ())]
        self._files.update((label, sorted(paths)) for label, paths in files.items())
        owned = {path for paths in self._files.values() for path in paths}
        return [path for path in before if path not in owned]

    def save(self) -> None:
        write_sealed(self._file, self._files)


def _make_room(root: Path, target: Path) -> None:
    for parent in reversed(target.parents):
        if root in parent.parents and (parent.is_symlink() or parent.is_file()):
            parent.unlink()
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
