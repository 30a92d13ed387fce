"""What the builds of one workspace leave for the next ones, and the store they share with other workspaces.

Knows no target. All but the store is memory: losing it costs time or explanations, never a right answer.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tilebuild.action import Artifact
from tilebuild.cache import eviction
from tilebuild.cache.disk import DiskStore
from tilebuild.cache.store import Cache
from tilebuild.events import Event
from tilebuild.execution.executor import Execution, Executor, Options
from tilebuild.execution.history import History, write_build_log
from tilebuild.execution.inputs import FileDigests
from tilebuild.execution.process import Runner
from tilebuild.execution.publish import Manifest, Publisher
from tilebuild.execution.sandbox import Sandbox

_LOG = "last_build.jsonl"
_REFRESHED = ("actions", "failed")
_OF_OUTPUTS = ("memo", "manifest.json")
_OF_HISTORY = ("history", "digests.json", "failed", "crashes", _LOG)


class State:
    """`folder` is ours alone; a build holds the workspace's lock while it has a state open for writing."""

    def __init__(self, folder: Path, output: Path, cache_folder: Path) -> None:
        self._folder = folder
        self._cache_folder = cache_folder
        self.store = DiskStore(cache_folder)
        self.digests = FileDigests()
        self.digests.load(folder / "digests.json")
        self.history = History(folder / "history")
        self.manifest = Manifest(folder / "manifest.json")
        self.publisher = Publisher(output, self.store, self.digests)

    def executor(
        self,
        runner: Runner,
        options: Options,
        source_path: Callable[[Artifact], str],
        observe: Callable[[Event], None],
        sandbox: Sandbox | None,
    ) -> Executor:
        return Executor(
            cache=Cache(self.store, self.store),
            runner=runner,
            digests=self.digests,
            history=self.history,
            publisher=self.publisher,
            source_path=source_path,
            scratch=self._folder,
            options=options,
            observe=observe,
            sandbox=sandbox,
        )

    def begin(self) -> None:
        """Removes what an earlier build left lying about, killed or failed."""
        for name in _REFRESHED:
            shutil.rmtree(self._folder / name, ignore_errors=True)
        (self._folder / "crashes").mkdir(exist_ok=True)

    def publish_only(self, files: Mapping[str, tuple[str, ...]]) -> None:
        """From now on these are the targets' files; those they had before and nobody has now are removed."""
        self.publisher.withdraw(self.manifest.replace(files))

    def log(self, execution: Execution) -> None:
        write_build_log(self._folder / _LOG, execution.outcomes)

    def save(self) -> None:
        self.history.save()
        self.manifest.save()
        self.digests.save(self._folder / "digests.json")
        self.store.sync()

    def close(self) -> None:
        self.store.close()

    def bound_cache(self, limit_bytes: int) -> None:
        """Drops what was not used for longest if the store, now closed, has outgrown its limit."""
        grown = self.store.bytes_added > 0
        if grown and eviction.usage(self._cache_folder).bytes > limit_bytes:
            with contextlib.suppress(eviction.StoreInUse):  # the next build will find it as large
                eviction.collect(self._cache_folder, limit_bytes)


def last_build(folder: Path) -> list[dict[str, Any]]:
    """The actions of the last build, in the order in which they ended; empty if there was none."""
    with contextlib.suppress(OSError, ValueError):  # none yet, or damaged
        return [json.loads(line) for line in (folder / _LOG).read_text(encoding="utf-8").splitlines()]
    return []


def forget(folder: Path, *, everything: bool) -> None:
    """Removes what says how the output folder looks; with `everything` also what explains earlier builds."""
    for name in (*_OF_OUTPUTS, *(_OF_HISTORY if everything else ())):
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
