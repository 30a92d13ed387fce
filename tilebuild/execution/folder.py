"""The private folder of one action: its inputs under their local names, later its outputs. Knows no schedule.

Sources are copied, and the copy is what was hashed: a source that changes while an action runs changes
nothing for it. Outputs of other actions are links to the store, read-only.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilebuild.action import Action
from tilebuild.cache.digest import digest_of_bytes, digest_of_file
from tilebuild.cache.store import BlobStore, OutputFile
from tilebuild.execution.fingerprint import Input


class InputChanged(Exception):
    """A source is not what it was when the key was made; its path is the argument."""


class BlobLost(Exception):
    """The store no longer has an input that it had when the key was made; its name is the argument."""


class OutputMissing(Exception):
    """The action succeeded without making a declared output; the local names are the arguments."""


@dataclass(frozen=True)
class PlacedInput:
    """An input and the source file to copy it from; without one it comes from the store."""

    input: Input
    source: str = ""


class ActionFolder:
    """`work` is where the command runs; beside it lie what it prints and its diagnostics."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.work = path / "work"
        self.temporary = path / "tmp"
        self.stdout = path / "stdout"
        self.stderr = path / "stderr"
        self.diagnostics = path / "diagnostics.json"

    def prepare(self, action: Action, inputs: Sequence[PlacedInput], blobs: BlobStore) -> None:
        self.remove()
        self.work.mkdir(parents=True)
        self.temporary.mkdir()
        folders = {self.work}
        for placed in inputs:
            target = self._target(placed.input.name, folders)
            if placed.source:
                _copy_exactly(placed.source, target, placed.input)
            elif not blobs.fetch(placed.input.digest, str(target), placed.input.executable):
                raise BlobLost(placed.input.name)
        for name, data in action.inline:
            self._target(name, folders).write_bytes(data)
        for name, _ in action.outputs:
            self._target(name, folders)

    def collect(self, action: Action, blobs: BlobStore) -> tuple[OutputFile, ...]:
        """Takes the declared outputs into the store; what else the command left is not looked at."""
        missing = [name for name, _ in action.outputs if not _is_file(self.work / name)]
        if missing:
            raise OutputMissing(*missing)
        return tuple(self._store(name, blobs) for name, _ in action.outputs)

    def keep(self, folder: Path) -> None:
        """Moves it aside, so that somebody can look into what failed."""
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / self.path.name
        shutil.rmtree(target, ignore_errors=True)
        self.path.rename(target)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _target(self, name: str, folders: set[Path]) -> Path:
        target = self.work / name
        if target.parent not in folders:
            target.parent.mkdir(parents=True, exist_ok=True)
            folders.add(target.parent)
        return target

    def _store(self, name: str, blobs: BlobStore) -> OutputFile:
        path = self.work / name
        executable = bool(path.stat().st_mode & stat.S_IXUSR)
        path.chmod(0o555 if executable else 0o444)
        digest = digest_of_file(path)
        blobs.add_file(str(path), digest)
        return OutputFile(name, digest, executable)


def _copy_exactly(source: str, target: Path, expected: Input) -> None:
    try:
        with open(source, "rb") as file:
            data = file.read()
    except OSError:
        raise InputChanged(source) from None
    if digest_of_bytes(data) != expected.digest:
        raise InputChanged(source)
    target.write_bytes(data)
    target.chmod(0o555 if expected.executable else 0o444)


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def tail(path: Path, lines: int = 20, limit: int = 8192) -> str:
    """The last lines of a file that a command writes, or nothing."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - limit))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.rstrip().splitlines()[-lines:])
