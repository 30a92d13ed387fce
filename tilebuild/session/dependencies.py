"""What the outcome of a request depended on: for the memo of a build, and for a watch. Builds nothing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from struct import unpack

from tilebuild import _boot
from tilebuild.action import Action
from tilebuild.execution.inputs import FileDigest, is_settled
from tilebuild.loading.loader import LoadResult
from tilebuild.session.plan import Plan
from tilebuild.toolchain import watched
from tilebuild.workspace import Workspace


@dataclass(frozen=True)
class Dependencies:
    """All that the outcome of a request depended on, for the memo; paths relative to the root or absolute."""

    started_ns: int
    files: tuple[str, ...]
    folders: tuple[str, ...]
    outputs: tuple[str, ...]

    @staticmethod
    def of(workspace: Workspace, plan: Plan, started_ns: int) -> Dependencies:
        root = f"{workspace.root}/"
        tools = {tool.name: tool.path for action in plan.actions for tool in action.tools}
        read = {artifact.location or artifact.path for artifact in plan.sources}
        absent = {path for path in read if not os.path.exists(workspace.root / path)}
        files = {*plan.loaded.files_read, *(read - absent), *watched.files(tools)}
        nearest = {_nearest_folder(workspace, path) for path in absent}
        folders = {*plan.loaded.directories, *nearest, *watched.folders()}
        # Tools that are built lie in the cache and are younger than the build; like outputs they are ours.
        outputs = {path for path in tools.values() if os.path.isfile(path)}
        outputs |= {str(workspace.path_of(a)) for a in plan.wanted if not a.source}
        return Dependencies(
            started_ns=started_ns,
            files=tuple(sorted(path.removeprefix(root) for path in files)),
            folders=tuple(sorted(folder or "." for folder in folders)),
            outputs=tuple(sorted(path.removeprefix(root) for path in outputs)),
        )

    def remember(
        self, workspace: Workspace, argv: Sequence[str], folder: str, environ: Mapping[str, str], text: str
    ) -> None:
        """Leaves a memo: the same command prints `text` while nothing changes. None, if something did."""
        paths = (self.files, self.folders, self.outputs)
        if any("\n" in path for group in paths for path in group):
            return
        root = str(workspace.root)
        try:
            with contextlib.chdir(root):
                found = _boot.signatures(*paths)
        except OSError:
            return  # something went away while we built
        if self._are_settled(unpack(f"{len(found) // 8}q", found)):
            with contextlib.suppress(OSError):  # no room for it: the next command looks at everything
                _boot.remember(root, argv, folder, environ, *paths, found, text.encode())

    def _are_settled(self, signatures: Sequence[int]) -> bool:
        """Whether nothing that was read can have changed since the build began and look the same now."""
        begin = 4 * len(self.files)
        end = begin + 3 * len(self.folders)
        times = [(signatures[at], signatures[at + 1]) for at in range(0, begin, 4)]
        times += [(signatures[at], signatures[at + 1]) for at in range(begin, end, 3)]
        return all(is_settled(mtime, ctime, self.started_ns) for mtime, ctime in times)


@dataclass(frozen=True)
class Reads:
    """What a request depends on in the workspace, as far as that is known; all paths are absolute.

    `files` are those that loading has read, with what it found; `sources` those that actions will read.
    `folders` are those whose entries decided something. After analysis `actions` are what may run, and
    `complete` is set unless mistakes hide a part.
    """

    started_ns: int
    files: Mapping[str, FileDigest]
    folders: frozenset[str]
    output: str
    sources: frozenset[str] = frozenset()
    actions: tuple[Action, ...] = ()
    complete: bool = False


def reads_of(workspace: Workspace, loaded: LoadResult, started_ns: int) -> Reads:
    """What is known after loading."""
    root = workspace.root
    return Reads(
        started_ns=started_ns,
        files={
            str(root / path): FileDigest(digest, os.access(root / path, os.X_OK))
            for path, digest in loaded.files_read.items()
        },
        folders=frozenset(str(root / folder) for folder in loaded.directories),
        output=str(workspace.output),
    )


def _nearest_folder(workspace: Workspace, path: str) -> str:
    """The folder whose entries change when the absent file, or a folder on the way to it, appears."""
    return next(p for p in PurePath(path).parents if (workspace.root / p).is_dir()).as_posix()
