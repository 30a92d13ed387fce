"""Brings the outputs of actions into being: from the cache, or by running them. Knows no targets and no
rules.

One thread. Actions whose inputs are known get their key and are looked up; those without a result run,
`jobs` at a time. Keys are made of contents, so an action whose inputs came out as before is a hit: early
cut-off needs no code here.
"""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tilebuild import faults
from tilebuild.action import Action, Artifact
from tilebuild.cache.digest import Digest
from tilebuild.cache.store import ActionResult, Cache, OutputFile
from tilebuild.diagnostics import Diagnostic
from tilebuild.events import ActionFinished, ActionStarted, Event, Outcome, Progress, RunningAction, Status
from tilebuild.execution import failure
from tilebuild.execution.fingerprint import Fingerprint, Input, difference, fingerprint
from tilebuild.execution.folder import (
    ActionFolder,
    BlobLost,
    InputChanged,
    OutputMissing,
    PlacedInput,
    tail,
)
from tilebuild.execution.history import History
from tilebuild.execution.inputs import FileDigests
from tilebuild.execution.interrupts import Cancellation, Interrupts
from tilebuild.execution.process import Command, Runner, Running
from tilebuild.execution.publish import Publisher
from tilebuild.execution.sandbox import Sandbox
from tilebuild.execution.schedule import Schedule, State

_TICK_S = 0.2
_KILL_PATIENCE_S = 5.0
_COPY_ATTEMPTS = 3


@dataclass(frozen=True)
class Options:
    """`dry_run` only says what would run."""

    jobs: int = 1
    keep_going: bool = False
    dry_run: bool = False


@dataclass(frozen=True)
class Execution:
    """How every action ended, in the order in which they did, and what was made."""

    outcomes: tuple[Outcome, ...]
    produced: dict[Artifact, OutputFile]
    interrupted: bool = False

    def outcome_of(self, action: Action) -> Outcome:
        return self._by_output[action.outputs[0][1]]

    @cached_property
    def _by_output(self) -> dict[Artifact, Outcome]:
        return {outcome.action.outputs[0][1]: outcome for outcome in self.outcomes}


@dataclass
class _Job:
    """An action that runs."""

    index: int
    fingerprint: Fingerprint
    folder: ActionFolder
    running: Running
    started: float
    descriptor: int = -1
    timed_out: bool = False


@dataclass
class Executor:
    """`source_path` finds a source; `scratch` holds the private folders and those of failed actions.

    Without a `sandbox` only its private folder keeps an action from what it did not declare.
    """

    cache: Cache
    runner: Runner
    digests: FileDigests
    history: History
    publisher: Publisher
    source_path: Callable[[Artifact], str]
    scratch: Path
    options: Options = field(default_factory=Options)
    observe: Callable[[Event], None] = lambda event: None
    sandbox: Sandbox | None = None

    def execute(
        self,
        actions: Sequence[Action],
        published: Collection[Artifact] = (),
        cancellation: Cancellation | None = None,
    ) -> Execution:
        """Makes the outputs of all `actions`; those in `published` also appear in the output folder."""
        with Interrupts(cancellation) as interrupts:
            return _Run(self, actions, frozenset(published), interrupts).run()


class _Run:
    """The state of one call of `execute`."""

    def __init__(
        self,
        executor: Executor,
        actions: Sequence[Action],
        published: frozenset[Artifact],
        interrupts: Interrupts,
    ) -> None:
        self._x = executor
        self._published = published
        self._interrupts = interrupts
        self._schedule = Schedule(actions)
        self._selector = selectors.DefaultSelector()
        self._selector.register(interrupts.reading, selectors.EVENT_READ)
        self._jobs: dict[int, _Job] = {}
        self._prints: dict[int, Fingerprint] = {}
        self._in_flight: dict[Digest, list[int]] = {}  # key under way -> actions that wait for it
        self._leads: dict[int, Digest] = {}
        self._outcomes: dict[int, Outcome] = {}
        self._produced: dict[Artifact, OutputFile] = {}
        self._failed = False
        self._began = time.time()

    def run(self) -> Execution:
        try:
            while self._schedule.unfinished and not self._interrupts.requested:
                self._look_up_ready()
                self._start_queued()
                self._note_resolved()
                if self._jobs:
                    self._wait()
                elif not self._may_go_on():
                    break
        finally:
            self._kill_all()
            self._selector.close()
        self._note_resolved()
        self._note_cancelled()
        return Execution(tuple(self._outcomes.values()), self._produced, self._interrupts.requested)

    def _may_go_on(self) -> bool:
        return self._schedule.unfinished > 0 and not self._is_stopping()

    def _is_stopping(self) -> bool:
        return self._failed and not self._x.options.keep_going

    # Looking up

    def _look_up_ready(self) -> None:
        while not self._is_stopping() and not self._interrupts.requested:
            index = self._schedule.pop_ready()
            if index is None:
                return
            self._look_up(index)
            self._note_resolved()

    def _look_up(self, index: int) -> None:
        action = self._schedule.actions[index]
        try:
            self._prints[index] = fingerprint(action, [placed.input for placed in self._inputs(action)])
        except OSError as error:
            said = failure.input_unreadable(action, error.filename or "an input", error)
            self._fail(index, said, fault=faults.exit_code(error))
            return
        key = self._prints[index].key
        if key in self._in_flight:
            self._in_flight[key].append(index)  # the same work is under way; look again when it is done
        elif (result := self._x.cache.results.get(key)) and self._take(index, result):
            self._finish(index, Status.HIT, result.seconds)
        elif self._x.options.dry_run:
            self._schedule.failed(index)
            self._note(index, Status.WOULD_RUN)
        else:
            self._in_flight[key] = []
            self._leads[index] = key
            self._schedule.queue(index)

    def _inputs(self, action: Action) -> list[PlacedInput]:
        placed = []
        for name, artifact in action.inputs:
            if (made := self._produced.get(artifact)) is not None:
                placed.append(PlacedInput(Input(name, made.digest, made.executable, artifact.path)))
            elif artifact.source:
                path = self._x.source_path(artifact)
                if name in action.optional and not os.path.exists(path):
                    continue
                found = self._x.digests.digest(path)
                placed.append(PlacedInput(Input(name, found.digest, found.executable, artifact.path), path))
        return placed

    def _take(self, index: int, result: ActionResult) -> bool:
        """Whether the result has all that the action declares; publishes what is to be published."""
        made = {output.path: output for output in result.outputs}
        outputs = self._schedule.actions[index].outputs
        if any(name not in made for name, _ in outputs):
            return False
        for name, artifact in outputs:
            if artifact in self._published and not self._x.options.dry_run:
                file = made[name]
                if not self._x.publisher.publish(artifact.path, file.digest, file.executable):
                    return False
        self._produced.update((artifact, made[name]) for name, artifact in outputs)
        return True

    # Running

    def _start_queued(self) -> None:
        while len(self._jobs) < self._x.options.jobs and not self._is_stopping():
            index = self._schedule.pop_startable()
            if index is None:
                return
            self._start(index)

    def _start(self, index: int) -> None:
        action = self._schedule.actions[index]
        # What an earlier build left running may still write into a folder that it knows.
        folder = ActionFolder(self._x.scratch / "actions" / f"{self._began:.6f}-{index}")
        try:
            self._fill(index, folder)
        except InputChanged as error:
            self._fail(index, failure.input_unstable(action, str(error)))
        except BlobLost as error:
            self._fail(index, failure.blob_lost(action, str(error)))
        else:
            self._launch(index, folder)

    def _launch(self, index: int, folder: ActionFolder) -> None:
        action = self._schedule.actions[index]
        try:
            running = self._x.runner.start(self._command(action, folder))
        except (FileNotFoundError, PermissionError) as error:
            self._fail(index, failure.cannot_start(action, error))
        else:
            job = _Job(index, self._prints[index], folder, running, time.monotonic())
            self._jobs[index] = job
            self._register(job)
            self._x.observe(ActionStarted(action))

    def _command(self, action: Action, folder: ActionFolder) -> Command:
        crashes = self._x.scratch / "crashes"
        command = _command(action, folder, crashes)
        if self._x.sandbox is None:
            return command
        return self._x.sandbox.confine(command, action, (str(folder.path), str(crashes)))

    def _fill(self, index: int, folder: ActionFolder) -> None:
        """Prepares the folder; a source that changed since its key was made gives the action a new key."""
        action = self._schedule.actions[index]
        for attempt in range(_COPY_ATTEMPTS):
            placed = self._inputs(action)
            self._prints[index] = fingerprint(action, [p.input for p in placed])
            try:
                folder.prepare(action, placed, self._x.cache.blobs)
                return
            except InputChanged as error:
                self._x.digests.forget(str(error))
                if attempt + 1 == _COPY_ATTEMPTS:
                    raise

    def _register(self, job: _Job) -> None:
        job.descriptor = job.running.fileno()
        self._selector.register(job.descriptor, selectors.EVENT_READ, job)

    def _wait(self) -> None:
        for key, _ in self._selector.select(_TICK_S):
            if isinstance(key.data, _Job):
                self._poll(key.data)
        now = time.monotonic()
        for job in self._jobs.values():
            limit = self._schedule.actions[job.index].timeout_s
            if now - job.started > limit and not job.timed_out:
                job.timed_out = True
                job.running.kill()
        self._report_progress(now)

    def _poll(self, job: _Job) -> None:
        self._selector.unregister(job.descriptor)
        status = job.running.poll()
        if status is None:
            self._register(job)
            return
        del self._jobs[job.index]
        self._complete(job, status)

    def _complete(self, job: _Job, status: int) -> None:
        action = self._schedule.actions[job.index]
        seconds = time.monotonic() - job.started
        if job.timed_out:
            self._fail(job.index, failure.timed_out(action, job.folder), seconds, job.folder)
            return
        if status != 0:
            said = failure.ended_badly(
                action, job.folder, status, lambda path: self._find(path, action, job.folder)
            )
            fault = failure.fault_of(action, job.folder, status)
            self._fail(job.index, said, seconds, job.folder, fault)
            return
        try:
            result = ActionResult(job.folder.collect(action, self._x.cache.blobs), seconds)
        except OutputMissing as error:
            missing = failure.outputs_missing(action, job.folder, error.args)
            self._fail(job.index, missing, seconds, job.folder)
            return
        self._x.cache.results.put(self._prints[job.index].key, result)
        if not self._take(job.index, result):
            self._fail(job.index, failure.blob_lost(action, "an output"), seconds, job.folder)
            return
        job.folder.remove()
        self._finish(job.index, Status.RAN, seconds)

    def _find(self, path: str, action: Action, folder: ActionFolder) -> str:
        """The name in the workspace of what an action tried to read and did not declare, or nothing."""
        root = os.path.abspath(self._x.source_path(Artifact("")))
        local = os.path.relpath(path, folder.work) if path.startswith(f"{folder.work}/") else path
        full = os.path.normpath(os.path.join(root, local))
        name = os.path.relpath(full, root)
        inside = full.startswith(f"{root}/") and os.path.isfile(full)
        return name if inside and all(artifact.path != name for _, artifact in action.inputs) else ""

    # Ends

    def _finish(self, index: int, status: Status, seconds: float) -> None:
        outputs = self._schedule.actions[index].outputs
        self._schedule.done(
            index, {artifact: self._produced[artifact].digest.size for _, artifact in outputs}
        )
        self._note(index, status, seconds)
        self._wake_twins(index)

    def _fail(
        self,
        index: int,
        diagnostics: tuple[Diagnostic, ...],
        seconds: float = 0.0,
        folder: ActionFolder | None = None,
        fault: int = 0,
    ) -> None:
        self._failed = True
        if folder is not None:
            folder.keep(self._x.scratch / "failed")
        self._schedule.failed(index)
        self._note(index, Status.FAILED, seconds, diagnostics, fault)
        self._wake_twins(index)

    def _wake_twins(self, index: int) -> None:
        key = self._leads.pop(index, None)
        for twin in self._in_flight.pop(key, []) if key else []:
            outcome = self._outcomes[index]
            if outcome.status is Status.FAILED:
                self._fail(twin, outcome.diagnostics, fault=outcome.fault)
            else:
                self._look_up(twin)

    def _note_resolved(self) -> None:
        while (index := self._schedule.pop_resolved()) is not None:
            skipped = self._schedule.state(index) is State.SKIPPED
            blocked = Status.MAY_RUN if self._x.options.dry_run else Status.BLOCKED
            self._note(index, Status.SKIPPED if skipped else blocked)

    def _note_cancelled(self) -> None:
        for index in range(len(self._schedule.actions)):
            if index not in self._outcomes:
                self._note(index, Status.CANCELLED)

    def _note(
        self,
        index: int,
        status: Status,
        seconds: float = 0.0,
        diagnostics: tuple[Diagnostic, ...] = (),
        fault: int = 0,
    ) -> None:
        action = self._schedule.actions[index]
        print_ = self._prints.get(index)
        outcome = Outcome(
            action=action,
            status=status,
            key=print_.key if print_ else None,
            seconds=seconds,
            facts=print_.facts if print_ else (),
            why=self._why(action, status, print_),
            diagnostics=diagnostics,
            fault=fault,
        )
        self._outcomes[index] = outcome
        if not self._x.options.dry_run:
            self._x.history.record(outcome, self._began)
        self._x.observe(ActionFinished(outcome))

    def _why(self, action: Action, status: Status, print_: Fingerprint | None) -> tuple[str, ...]:
        if print_ is None or status in (Status.CANCELLED, Status.BLOCKED):
            return ()
        last = self._x.history.last(action)
        if last is None:
            return () if status is Status.HIT else ("it has not been built here before",)
        if last.key != str(print_.key):
            return difference(last.facts, print_.facts)
        if status is Status.HIT:
            return ()
        return (
            ("it failed last time",) if last.status == "failed" else ("the cache no longer has its result",)
        )

    def _kill_all(self) -> None:
        for job in self._jobs.values():
            job.running.kill()
        deadline = time.monotonic() + _KILL_PATIENCE_S
        while self._jobs and time.monotonic() < deadline:
            for key, _ in self._selector.select(_TICK_S):
                if isinstance(key.data, _Job):
                    self._selector.unregister(key.data.descriptor)
                    if key.data.running.poll() is None:
                        self._register(key.data)
                    else:
                        self._jobs.pop(key.data.index).folder.remove()

    def _report_progress(self, now: float) -> None:
        running = tuple(
            RunningAction(
                self._schedule.actions[job.index], now - job.started, tail(job.folder.stderr, 1, 512)
            )
            for job in self._jobs.values()
        )
        total = len(self._schedule.actions)
        self._x.observe(Progress(total - self._schedule.unfinished, total, running))


def _command(action: Action, folder: ActionFolder, crashes: Path) -> Command:
    tool = failure.tool_of(action)
    program = () if tool.module else (tool.path,)
    return Command(
        argv=(*program, *action.argv[1:]),
        folder=str(folder.work),
        environment=_environment(action, folder, crashes),
        stdout=str(folder.stdout),
        stderr=str(folder.stderr),
        module=tool.module,
    )


def _environment(action: Action, folder: ActionFolder, crashes: Path) -> dict[str, str]:
    """What a command finds in its environment: nothing of ours, so that a result cannot depend on it."""
    return {
        **BASE_ENVIRONMENT,
        "HOME": str(folder.temporary),
        "TMPDIR": str(folder.temporary),
        "TILEBUILD_CRASHES": str(crashes),
        "TILEBUILD_DIAGNOSTICS": str(folder.diagnostics),
        **{f"TILEBUILD_TOOL_{tool.name.upper().replace('-', '_')}": tool.path for tool in action.tools},
        **dict(action.environment),
    }


BASE_ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}
