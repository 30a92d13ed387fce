"""Composes the verbs: load, analyse, execute, report. The only place that knows more than one of them.

A session is one command in one workspace. It prints nothing; what happens goes to `observe`, what came of
it is returned.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tilebuild import _boot, toolchain
from tilebuild.action import Artifact
from tilebuild.analysis.analyzer import Analysis, analyze
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError
from tilebuild.events import Event, PhaseStarted, Status
from tilebuild.execution.executor import BASE_ENVIRONMENT, Execution, Options
from tilebuild.execution.history import History, Record
from tilebuild.execution.interrupts import Cancellation
from tilebuild.execution.lock import locked
from tilebuild.execution.process import FreshProcesses, Runner
from tilebuild.execution.sandbox import NONE, Sandbox
from tilebuild.execution.state import State, forget, last_build
from tilebuild.execution.worker import WarmWorker
from tilebuild.label import Label
from tilebuild.loading.loader import LoadResult, load
from tilebuild.query.evaluate import Result, evaluate
from tilebuild.query.expression import parse, patterns
from tilebuild.report import Report, TargetResult
from tilebuild.rule import Providers
from tilebuild.session.dependencies import Dependencies, Reads, reads_of
from tilebuild.session.plan import Plan, goals_of, roots_of
from tilebuild.session.request import LOCK_PATIENCE_S, Request
from tilebuild.session.results import results
from tilebuild.settings import Settings
from tilebuild.toolchain.memory import cache_folder
from tilebuild.workspace import Workspace, open_workspace


@dataclass
class Session:
    """`start` is the folder where the command was given; `overrides` are settings of the command line.

    `on_reads` is told what a request depends on before anything runs, also when loading found mistakes.
    A `runner` that is given is used for all requests and stays open; `cancellation` ends the request that
    runs.
    """

    start: Path
    overrides: Mapping[str, object] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    observe: Callable[[Event], None] = lambda event: None
    on_reads: Callable[[Reads], None] | None = None
    runner: Runner | None = None
    cancellation: Cancellation | None = None
    dependencies: Dependencies | None = field(default=None, init=False)

    def open(self) -> None:
        """Finds the workspace and reads its settings. Raises DiagnosticError."""
        self._opened  # noqa: B018

    @cached_property
    def _opened(self) -> tuple[Workspace, Settings]:
        return open_workspace(self.start, self.overrides, self.environ)

    @property
    def workspace(self) -> Workspace:
        return self._opened[0]

    @property
    def settings(self) -> Settings:
        return self._opened[1]

    @property
    def state_folder(self) -> Path:
        """The folder of what this tool remembers about the workspace."""
        return self.workspace.output / ".tilebuild"

    @property
    def cache_folder(self) -> Path:
        configured = self.settings.cache.directory
        return self.workspace.root / configured if configured else cache_folder() / "cache"

    # Commands

    def load(self, wanted: Sequence[str], *, manual: bool = False, keep_going: bool = False) -> LoadResult:
        """Raises DiagnosticError with everything that is wrong; with `keep_going` the result says it."""
        self.observe(PhaseStarted("loading"))
        started_ns = time.time_ns()
        here = self.workspace.folder(self.start)
        loaded = load(self.workspace, self.settings, wanted, here, manual=manual, keep_going=True)
        if self.on_reads is not None:
            self.on_reads(reads_of(self.workspace, loaded, started_ns))
        if loaded.problems and not keep_going:
            raise DiagnosticError(*loaded.problems)
        return loaded

    def analyze(self, loaded: LoadResult, roots: Sequence[Label], *, keep_going: bool = False) -> Analysis:
        self.observe(PhaseStarted("analysing"))
        return analyze(loaded.graph, roots, self.settings, toolchain.tool, keep_going=keep_going)

    def query(self, expression: str) -> tuple[Result, LoadResult]:
        """Answers a query; takes no lock and runs nothing."""
        parsed = parse(expression)
        loaded = self.load(patterns(parsed), manual=True)
        return evaluate(parsed, loaded.graph, self.workspace.folder(self.start)), loaded

    def run(self, request: Request) -> Report:
        """Does what `build` and `test` do. Raises DiagnosticError for what is wrong before anything runs."""
        if request.dry_run:
            return self._preview(request)
        with self._locked(request.lock_patience_s):
            began = time.monotonic()
            started_ns = time.time_ns()
            plan = self.plan(request)
            with self._state() as state:
                state.begin()
                try:
                    execution = self._execute(state, request, plan)
                    found = results(plan, execution, state.store)
                    state.publish_only({result.label: result.files for result in found if result.ok})
                    state.log(execution)
                finally:
                    state.save()
            state.bound_cache(self.settings.cache.limit_bytes)
            self.dependencies = Dependencies.of(self.workspace, plan, started_ns)
        return self._report(request, plan, execution, found, time.monotonic() - began)

    def plan(self, request: Request) -> Plan:
        """Which actions make what is asked for."""
        started_ns = time.time_ns()
        loaded = self.load(request.patterns, keep_going=request.keep_going)
        roots = roots_of(loaded, request.verb)
        analysis = self.analyze(loaded, roots, keep_going=request.keep_going)
        sound = [label for label in roots if label in analysis.targets]
        goals = {label: goals_of(analysis.targets[label].providers, request) for label in sound}
        plan = Plan(request, loaded, analysis, goals)
        if self.on_reads is not None:
            sources = frozenset(str(self.workspace.path_of(artifact)) for artifact in plan.sources)
            reads = reads_of(self.workspace, loaded, started_ns)
            whole = not plan.problems
            self.on_reads(replace(reads, sources=sources, actions=plan.actions, complete=whole))
        return plan

    def make(
        self, request: Request, choose: Callable[[Providers], Sequence[Artifact]]
    ) -> tuple[Mapping[Label, Providers], Mapping[Artifact, bytes]]:
        """Makes files of targets that are not among their published ones, and gives their content.

        Returns what the targets provide; files that could not be made are absent.
        """
        with self._locked(request.lock_patience_s):
            plan = self.plan(request)
            providers = {label: plan.providers(label) for label in plan.goals}
            plan = replace(plan, goals={label: tuple(choose(providers[label])) for label in plan.goals})
            with self._state() as state:
                state.begin()
                try:
                    execution = self._execute(state, request, plan, publish=False)
                    found = {a: self._content(state, a, execution) for a in plan.wanted}
                finally:
                    state.save()
        return providers, {artifact: data for artifact, data in found.items() if data is not None}

    def _content(self, state: State, artifact: Artifact, execution: Execution) -> bytes | None:
        if artifact.source:
            path = self.workspace.path_of(artifact)
            return path.read_bytes() if path.is_file() else None
        made = execution.produced.get(artifact)
        return state.store.read(made.digest) if made is not None else None

    def contents(
        self, pattern: str, choose: Callable[[Providers], Sequence[Artifact]]
    ) -> dict[Artifact, bytes]:
        """The content of files that were made for a target, also of those that are not published.

        `choose` picks them from the target's providers. Raises DiagnosticError if the target is not built.
        """
        request = Request("build", (pattern,), dry_run=True, keep_going=True)
        plan = self.plan(request)
        if plan.problems:
            raise DiagnosticError(*plan.problems)
        wanted = [a for label in plan.goals for a in choose(plan.providers(label))]
        plan = replace(plan, goals=dict.fromkeys(plan.goals, wanted))
        with self._state() as state:
            execution = self._execute(state, request, plan)
            made = {a: execution.produced[a] for a in wanted if a in execution.produced}
            found = {artifact: state.store.read(file.digest) for artifact, file in made.items()}
        if any(a not in made and _is_unbuilt(execution, a) for a in wanted):
            fact = f"{pattern} is not built, or something it depends on has changed since"
            raise DiagnosticError(Diagnostic(fact, Blame.BUILD_FILE, help=f"tilebuild build {pattern}"))
        return {artifact: data for artifact, data in found.items() if data is not None}

    def _preview(self, request: Request) -> Report:
        """A dry run: holds no lock and leaves nothing behind."""
        began = time.monotonic()
        plan = self.plan(request)
        with self._state() as state:
            execution = self._execute(state, request, plan)
            found = results(plan, execution, state.store)
        return self._report(request, plan, execution, found, time.monotonic() - began)

    def _report(
        self,
        request: Request,
        plan: Plan,
        execution: Execution,
        targets: tuple[TargetResult, ...],
        seconds: float,
    ) -> Report:
        return Report(
            verb=request.verb,
            targets=targets,
            outcomes=execution.outcomes,
            seconds=seconds,
            interrupted=execution.interrupted,
            dry_run=request.dry_run,
            problems=plan.problems,
            printed=plan.loaded.printed,
            output=self.settings.output,
            allow_pending=request.allow_pending,
            sandbox=self._sandbox.name if request.sandbox else NONE,
        )

    def remember(self, argv: Sequence[str], folder: str, text: str) -> None:
        """Leaves a memo of the last `run`, which ended well: the same command prints `text` if nothing
        changes.
        """
        if self.dependencies is not None and self.settings.output == _boot.OUTPUT:
            self.dependencies.remember(self.workspace, argv, folder, self.environ, text)

    def records(self, label: str) -> Mapping[str, Record]:
        """What the last builds knew of a target's actions, by the first file that each makes."""
        return History(self.state_folder / "history").of_target(label)

    def last_build(self) -> list[dict[str, Any]]:
        return last_build(self.state_folder)

    def clean(self, *, expunge: bool = False) -> None:
        """Removes all outputs; with `expunge` also this workspace's memory."""
        if not self.workspace.output.exists():
            return
        with self._locked(LOCK_PATIENCE_S):
            for entry in self.workspace.output.iterdir():
                if entry == self.state_folder:
                    continue
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()
            forget(self.state_folder, everything=expunge)

    # Parts of a build

    @contextlib.contextmanager
    def _state(self) -> Iterator[State]:
        state = State(self.state_folder, self.workspace.output, self.cache_folder)
        try:
            yield state
        finally:
            state.close()

    def _execute(self, state: State, request: Request, plan: Plan, *, publish: bool = True) -> Execution:
        runner = self.runner or open_runner(warm=request.workers)
        jobs = request.jobs or self.settings.jobs or len(os.sched_getaffinity(0))
        executor = state.executor(
            runner,
            Options(jobs, request.keep_going, request.dry_run),
            lambda artifact: str(self.workspace.path_of(artifact)),
            self.observe,
            self._sandbox if request.sandbox else None,
        )
        try:
            return executor.execute(plan.actions, plan.wanted if publish else (), self.cancellation)
        finally:
            if runner is not self.runner:
                runner.close()

    @cached_property
    def _sandbox(self) -> Sandbox:
        return Sandbox.open(self.workspace.root, self.cache_folder / "sandbox.json")

    @contextlib.contextmanager
    def _locked(self, patience_s: float) -> Iterator[None]:
        if not self.state_folder.is_dir():
            self._make_state_folder()
            (self.workspace.output / ".gitignore").write_text("*\n")
            time.sleep(0.03)  # the root has changed just now, and must look older than this build
        lock = self.state_folder / "lock"
        with locked(lock, patience_s, self._tell_waiting):
            try:
                yield
            except FileNotFoundError as error:
                if lock.exists():
                    raise
                fact = f"the folder {self.settings.output} was removed while it was worked in"
                raise DiagnosticError(Diagnostic(fact, Blame.TOOLCHAIN, help="build again")) from error

    def _make_state_folder(self) -> None:
        try:
            self.state_folder.mkdir(parents=True, exist_ok=True)  # another build may be faster
        except (FileExistsError, NotADirectoryError, FileNotFoundError) as error:
            fact = f"{self.settings.output} is no folder, and no folder can be made there"
            help = 'move it away, or name another folder: output = "…" in tilebuild.toml'
            raise DiagnosticError(Diagnostic(fact, Blame.TOOLCHAIN, help=help)) from error

    def _tell_waiting(self, holder: str) -> None:
        self.observe(PhaseStarted(f"waiting for another build of this workspace ({holder})"))


def open_runner(*, warm: bool) -> Runner:
    """Runs Python tools in forks of one warm worker, or everything in fresh processes."""
    return WarmWorker(BASE_ENVIRONMENT) if warm else FreshProcesses()


def _is_unbuilt(execution: Execution, artifact: Artifact) -> bool:
    """Whether the file is absent for another reason than that nothing needs it."""
    outcomes = (o for o in execution.outcomes if any(a == artifact for _, a in o.action.outputs))
    return all(outcome.status is not Status.SKIPPED for outcome in outcomes)
