"""glob(): which source files of a package match.

Knows the file system, through listings that it remembers, and no target.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

#: Either name makes a folder a package; the first one wins.
BUILD_FILES = ("BUILD.tile", "BUILD")


class GlobError(ValueError):
    """A pattern that is not allowed."""


@dataclass(frozen=True)
class Listing:
    """The entries of one folder, sorted; links to folders are left out, dangling links too."""

    files: tuple[str, ...]
    folders: tuple[str, ...]

    @property
    def build_file(self) -> str:
        """The name of the BUILD file, or the empty string."""
        return next((name for name in BUILD_FILES if name in self.files), "")


@dataclass
class Folders:
    """Listings of the folders of a workspace.

    `seen` are those whose entries decided something, relative to the root.

    A folder in `ignored` is as good as absent: what is built must not be taken for source.
    """

    root: Path
    ignored: frozenset[str] = frozenset()
    _listings: dict[str, Listing | None] = field(default_factory=dict)

    @property
    def seen(self) -> frozenset[str]:
        return frozenset(self._listings)

    def listing(self, folder: str) -> Listing | None:
        """The entries of a folder, or None if there is no such folder."""
        if folder not in self._listings:
            self._listings[folder] = self._read(folder)
        return self._listings[folder]

    def build_file(self, folder: str) -> str:
        """The BUILD file of a folder, relative to the root, or the empty string."""
        listing = self._along(folder)
        if listing is None or not listing.build_file:
            return ""
        return f"{folder}/{listing.build_file}" if folder else listing.build_file

    def is_file(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        listing = self._along(folder)
        return listing is not None and name in listing.files

    def is_folder(self, path: str) -> bool:
        return self._along(path) is not None

    def _along(self, folder: str) -> Listing | None:
        """The listing of a folder, reading the folders above it first: they decide whether it exists."""
        if folder and folder not in self._listings:
            above, _, name = folder.rpartition("/")
            listing = self._along(above)
            if listing is None or name not in listing.folders:
                return None
        return self.listing(folder)

    def _read(self, folder: str) -> Listing | None:
        files, folders = [], []
        try:
            with os.scandir(self.root / folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if (f"{folder}/{entry.name}" if folder else entry.name) not in self.ignored:
                            folders.append(entry.name)
                    elif entry.is_file():
                        files.append(entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Listing(tuple(sorted(files)), tuple(sorted(folders)))


def glob(
    folders: Folders, package: str, include: Sequence[str], exclude: Sequence[str], with_folders: bool = False
) -> list[str]:
    """The files of a package that match a pattern of `include` and none of `exclude`, sorted.

    Raises GlobError.
    """
    included = [_compile(pattern) for pattern in include]
    excluded = [_compile(pattern) for pattern in exclude]
    deep = with_folders or any("/" in pattern or pattern == "**" for pattern in include)
    return sorted(
        path
        for path, is_folder in _walk(folders, package, "", deep)
        if (with_folders or not is_folder)
        and any(pattern.fullmatch(path) for pattern in included)
        and not any(pattern.fullmatch(path) for pattern in excluded)
    )


def matches(path: str, include: Sequence[str], exclude: Sequence[str] = ()) -> bool:
    """Whether a path matches a pattern of `include` and none of `exclude`. Raises GlobError."""
    return any(_compile(p).fullmatch(path) for p in include) and not any(
        _compile(p).fullmatch(path) for p in exclude
    )


def _walk(folders: Folders, package: str, below: str, deep: bool) -> Iterator[tuple[str, bool]]:
    """Paths relative to the package, with whether they are folders; other packages are not entered."""
    here = "/".join(part for part in (package, below) if part)
    listing = folders.listing(here)
    if listing is None:
        return
    prefix = f"{below}/" if below else ""
    for name in listing.files:
        yield prefix + name, False
    for name in listing.folders:
        inner = folders.listing(f"{here}/{name}" if here else name) if deep else None
        if inner is not None and inner.build_file:
            continue
        yield prefix + name, True
        if deep:
            yield from _walk(folders, package, prefix + name, deep)


@lru_cache(maxsize=1024)
def _compile(pattern: str) -> re.Pattern[str]:
    """A regular expression over relative paths."""
    if not pattern:
        raise GlobError("a pattern is empty")
    if pattern.startswith("/"):
        raise GlobError(f"pattern '{pattern}' is absolute; patterns are relative to the package")
    if "?" in pattern:
        raise GlobError(f"pattern '{pattern}': wildcard '?' is not allowed")
    segments = pattern.split("/")
    parts = []
    for index, segment in enumerate(segments):
        last = index == len(segments) - 1
        if not segment or segment in (".", ".."):
            raise GlobError(f"pattern '{pattern}': segment '{segment}' is not allowed")
        if segment == "**":
            parts.append(".*" if last else "(?:[^/]+/)*")
            continue
        if "**" in segment:
            raise GlobError(f"pattern '{pattern}': '**' must be a segment of its own")
        # As in Bazel, a bare star matches hidden names and a longer pattern does not.
        hidden = r"(?!\.)" if segment.startswith("*") and segment != "*" else ""
        parts.append(hidden + "[^/]*".join(re.escape(piece) for piece in segment.split("*")))
        if segment == "*":
            parts[-1] = "[^/]+"
        if not last:
            parts.append("/")
    return re.compile("".join(parts))
