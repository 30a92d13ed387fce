"""A small workspace for tests of the executor: files, actions of the shell, and what happened to them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilebuild.action import Action, Artifact, Tool
from tilebuild.cache.disk import DiskStore
from tilebuild.cache.store import Cache
from tilebuild.events import Event
from tilebuild.execution.executor import Execution, Executor, Options
from tilebuild.execution.history import History
from tilebuild.execution.inputs import FileDigests
from tilebuild.execution.process import FreshProcesses, Runner
from tilebuild.execution.publish import Publisher
from tilebuild.execution.sandbox import Sandbox

SH = Tool("sh", digest="sh 1", path="/bin/sh")


def source(path: str) -> Artifact:
    return Artifact(path)


def made(path: str) -> Artifact:
    return Artifact(path, source=False)


def shell(
    script: str,
    inputs: Sequence[Artifact] = (),
    outputs: Sequence[Artifact] = (),
    *,
    optional: Sequence[Artifact] = (),
    guard: Artifact | None = None,
    serial: str = "",
    timeout_s: float = 60.0,
    label: str = "//:t",
) -> Action:
    """An action of the shell; local names are the paths of the artifacts."""
    return Action(
        mnemonic="Shell",
        argv=("sh", "-ec", script),
        inputs=tuple((artifact.path, artifact) for artifact in [*inputs, *optional]),
        outputs=tuple((artifact.path, artifact) for artifact in outputs),
        tools=(SH,),
        optional=frozenset(artifact.path for artifact in optional),
        guard=guard,
        serial=serial,
        timeout_s=timeout_s,
        label=label,
    )


class Space:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "workspace"
        self.output = folder / "out"
        self.scratch = folder / "scratch"
        self.root.mkdir(parents=True)
        self.store_folder = folder / "store"
        self.events: list[Event] = []

    def write(self, path: str, text: str) -> Artifact:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return source(path)

    def read(self, path: str) -> str:
        return (self.output / path).read_text()

    def build(
        self,
        *actions: Action,
        options: Options | None = None,
        runner: Runner | None = None,
        publish: bool = True,
        sandbox: Sandbox | None = None,
    ) -> Execution:
        """As a new process would: nothing is shared with earlier builds but the disk."""
        store = DiskStore(self.store_folder)
        digests = FileDigests()
        executor = Executor(
            cache=Cache(store, store),
            runner=runner or FreshProcesses(),
            digests=digests,
            history=History(self.scratch / "history"),
            publisher=Publisher(self.output, store, digests),
            source_path=lambda artifact: str(self.root / artifact.path),
            scratch=self.scratch,
            options=options or Options(jobs=2),
            observe=self.events.append,
            sandbox=sandbox,
        )
        outputs = [artifact for action in actions for _, artifact in action.outputs]
        try:
            return executor.execute(actions, outputs if publish else ())
        finally:
            executor.history.save()
            store.close()


def statuses(execution: Execution) -> dict[str, str]:
    """How each action ended, by its first output."""
    return {o.action.outputs[0][1].path: o.status.value for o in execution.outcomes}
