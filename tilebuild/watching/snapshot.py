"""What a build depends on, how it looked at one moment, and what is different at another. Knows the file
system, and no build.

Contents are compared, not times: a touched file, or one that was written again with the same text, is no
difference.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from tilebuild.watching.editors import is_transient

#: Whatever is equal for equal contents; raises OSError.
Contents = Callable[[str], object]

_MAX_LINKS = 40
_TICK_NS = 20_000_000  # the coarsest step of the times that Linux gives to files


@dataclass(frozen=True)
class Scope:
    """Absolute paths. `files` are read, and of `folders` which entries they have, but for those `ignored`.

    `read` holds what was found in some files when they were read, at `since_ns` or later.
    """

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    read: Mapping[str, object] | None = None
    since_ns: int = 0

    def __or__(self, other: Scope) -> Scope:
        """Both; of what was read, the newer."""
        return replace(
            other,
            files=self.files | other.files,
            folders=self.folders | other.folders,
            ignored=self.ignored | other.ignored,
        )

    def places(self, root: str) -> tuple[frozenset[str], frozenset[str]]:
        """The names of the files, those that links lead to included, and the folders to keep an eye on:
        theirs, the ones listed, and all above those up to the root, where a folder that is made again shows.
        """
        hops = {hop for path in self.files for hop in _hops(path)}
        near = {os.path.dirname(path) for path in hops} | self.folders
        near |= {os.path.realpath(folder) for folder in near}
        above = {folder for start in near for folder in _above(start, root)}
        return frozenset(os.path.basename(path) for path in hops), frozenset(near | above)


@dataclass(frozen=True, order=True)
class Change:
    """`kind` is saved, new or gone."""

    path: str
    kind: str


@dataclass(frozen=True)
class Snapshot:
    """A file or folder that is absent is None."""

    files: Mapping[str, object]
    folders: Mapping[str, frozenset[str] | None]


EMPTY = Snapshot({}, {})


def take(scope: Scope, contents: Contents) -> Snapshot:
    return Snapshot(
        {path: _content(path, contents) for path in scope.files},
        {folder: _entries(folder, scope.ignored) for folder in scope.folders},
    )


def changes(before: Snapshot, after: Snapshot) -> tuple[Change, ...]:
    """What is different, among what both know; sorted by path."""
    found = {}
    for folder in before.folders.keys() & after.folders.keys():
        old, new = before.folders[folder] or frozenset(), after.folders[folder] or frozenset()
        found.update({os.path.join(folder, name): "new" for name in new - old})
        found.update({os.path.join(folder, name): "gone" for name in old - new})
    for path in before.files.keys() & after.files.keys():
        if before.files[path] != after.files[path]:
            found[path] = _kind(before.files[path], after.files[path])
    return tuple(sorted(Change(path, kind) for path, kind in found.items()))


def extended(before: Snapshot, scope: Scope, contents: Contents) -> tuple[Snapshot, tuple[Change, ...]]:
    """What a build depends on that reads `scope`, and the folders that changed while it began to.

    What `before` holds stays: it was taken before the build began. Other files count as they were read, else
    as they are now, when no action has begun; folders as they are now, unless something just happened there.
    """
    now = take(scope, contents)
    read = scope.read or {}
    files = {path: before.files.get(path, read.get(path, now.files[path])) for path in scope.files}
    folders = {folder: before.folders.get(folder, now.folders[folder]) for folder in scope.folders}
    unknown = sorted(scope.folders - before.folders.keys()) if scope.since_ns else []
    restless = [folder for folder in unknown if _modified_ns(folder) > scope.since_ns - _TICK_NS]
    return Snapshot(files, folders), tuple(Change(folder, "saved") for folder in restless)


def signature(scope: Scope) -> tuple[object, ...]:
    """Looks different, at the latest a moment later, when something in the scope has changed; reads no
    contents.
    """
    return tuple(_stat(path) for path in sorted(scope.files | scope.folders))


def _kind(before: object, after: object) -> str:
    if after is None:
        return "gone"
    return "new" if before is None else "saved"


def _content(path: str, contents: Contents) -> object:
    try:
        return contents(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        # A folder in its place, a file that may not be read: the build says so when it looks again.
        return f"unreadable: {errno.errorcode.get(error.errno or 0, 'unknown')}"


def _entries(folder: str, ignored: frozenset[str]) -> frozenset[str] | None:
    """As loading lists them: dangling links and links to folders are left out."""
    try:
        with os.scandir(folder) as entries:
            return frozenset(
                entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "")
                for entry in entries
                if not is_transient(entry.name)
                and entry.path not in ignored
                and (entry.is_dir(follow_symlinks=False) or entry.is_file())
            )
    except OSError:
        return None


def _stat(path: str) -> object:
    try:
        status = os.stat(path)
    except OSError as error:
        return error.errno
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def _modified_ns(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _hops(path: str) -> Iterator[str]:
    """The path, and where each link that stands in its place leads."""
    yield path
    for _ in range(_MAX_LINKS):
        try:
            target = os.path.join(os.path.dirname(path), os.readlink(path))
        except OSError:
            return
        folder, name = os.path.split(target)
        path = os.path.join(os.path.realpath(folder), name)
        yield path


def _above(folder: str, root: str) -> Iterator[str]:
    while folder.startswith(f"{root}/"):
        folder = os.path.dirname(folder)
        yield folder
