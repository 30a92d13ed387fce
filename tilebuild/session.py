"""Composes the verbs: load, analyse, execute, report. The only place that knows more than one of them.

A session is one command in one workspace. It prints nothing; what happens goes to `observe`, what came of
it is returned.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePath
from struct import unpack
from typing import Any

from tilebuild import _boot, toolchain
from tilebuild.action import Action, Artifact
from tilebuild.analysis.analyzer import Analysis, analyze
from tilebuild.cache.disk import DiskStore
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError
from tilebuild.events import Event, Outcome, PhaseStarted, Status
from tilebuild.execution.executor import BASE_ENVIRONMENT, Execution, Options
from tilebuild.execution.history import History, Record
from tilebuild.execution.inputs import FileDigest, is_settled
from tilebuild.execution.interrupts import Cancellation
from tilebuild.execution.lock import locked
from tilebuild.execution.process import FreshProcesses, Runner
from tilebuild.execution.sandbox import NONE, Sandbox
from tilebuild.execution.state import State, forget, last_build
from tilebuild.execution.worker import WarmWorker
from tilebuild.label import Label
from tilebuild.loading.loader import LoadResult, load
from tilebuild.port import STYLES
from tilebuild.query.evaluate import Result, evaluate
from tilebuild.query.expression import parse, patterns
from tilebuild.report import Report, TargetResult
from tilebuild.rule import Providers
from tilebuild.settings import Settings
from tilebuild.toolchain import watched
from tilebuild.toolchain.memory import cache_folder
from tilebuild.workspace import Workspace, open_workspace

#: How much `build` proves; each level includes those before it.
VERIFY_LEVELS = ("none", "compare", "cpu", "gpu", "bench")

_LOCK_PATIENCE_S = 600.0
#: An action that ended so has all that it needs.
_SOUND = frozenset({Status.RAN, Status.HIT, Status.SKIPPED, Status.WOULD_RUN, Status.MAY_RUN})
_BENCHMARK = "tile_benchmark rule"


@dataclass(frozen=True)
class Request:
    """What a `build`, `test` or `bench` was asked for; a port that is less safe than `style` fails.

    `allow_pending` lets tests pass whose verdict is still to be made on another machine.
    """

    verb: str
    patterns: tuple[str, ...]
    jobs: int = 0
    keep_going: bool = False
    dry_run: bool = False
    workers: bool = True
    verify: str = "gpu"
    style: str = ""
    allow_pending: bool = False
    sandbox: bool = True
    lock_patience_s: float = _LOCK_PATIENCE_S


@dataclass(frozen=True)
class Dependencies:
    """All that the outcome of a request depended on, for the memo; paths relative to the root or absolute."""

    started_ns: int
    files: tuple[str, ...]
    folders: tuple[str, ...]
    outputs: tuple[str, ...]


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
            self.on_reads(self._reads(loaded, started_ns))
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
                    results = plan.results(execution, state.store)
                    state.publish_only({result.label: result.files for result in results if result.ok})
                    state.log(execution)
                finally:
                    state.save()
            state.bound_cache(self.settings.cache.limit_bytes)
            self.dependencies = self._dependencies(started_ns, plan)
        return self._report(request, plan, execution, results, time.monotonic() - began)

    def plan(self, request: Request) -> _Plan:
        """Which actions make what is asked for."""
        started_ns = time.time_ns()
        loaded = self.load(request.patterns, keep_going=request.keep_going)
        roots = _roots(loaded, request.verb)
        analysis = self.analyze(loaded, roots, keep_going=request.keep_going)
        sound = [label for label in roots if label in analysis.targets]
        goals = {label: _goals(analysis.targets[label].providers, request) for label in sound}
        plan = _Plan(request, loaded, analysis, goals)
        if self.on_reads is not None:
            sources = frozenset(str(self.workspace.path_of(artifact)) for artifact in plan.sources)
            reads = self._reads(loaded, started_ns)
            whole = not (loaded.problems or analysis.problems)
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
            providers = {label: plan.analysis.targets[label].providers for label in plan.goals}
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
        wanted = [a for label in plan.goals for a in choose(plan.analysis.targets[label].providers)]
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
            results = plan.results(execution, state.store)
        return self._report(request, plan, execution, results, time.monotonic() - began)

    def _report(
        self,
        request: Request,
        plan: _Plan,
        execution: Execution,
        results: tuple[TargetResult, ...],
        seconds: float,
    ) -> Report:
        return Report(
            verb=request.verb,
            targets=results,
            outcomes=execution.outcomes,
            seconds=seconds,
            interrupted=execution.interrupted,
            dry_run=request.dry_run,
            problems=(*plan.loaded.problems, *plan.analysis.problems),
            printed=plan.loaded.printed,
            output=self.settings.output,
            allow_pending=request.allow_pending,
            sandbox=self._sandbox.kind if request.sandbox else NONE,
        )

    def remember(self, argv: Sequence[str], folder: str, text: str) -> None:
        """Leaves a memo of the last `run`, which ended well: the same command prints `text` if nothing
        changes.
        """
        depends = self.dependencies
        if depends is None or self.settings.output != _boot.OUTPUT:
            return
        paths = (depends.files, depends.folders, depends.outputs)
        if any("\n" in path for group in paths for path in group):
            return
        root = str(self.workspace.root)
        try:
            with contextlib.chdir(root):
                found = _boot.signatures(*paths)
        except OSError:
            return  # something went away while we built
        values = unpack(f"{len(found) // 8}q", found)
        if _are_settled(values, len(depends.files), len(depends.folders), depends.started_ns):
            with contextlib.suppress(OSError):  # no room for it: the next command looks at everything
                _boot.remember(root, argv, folder, self.environ, *paths, found, text.encode())

    def records(self, label: str) -> Mapping[str, Record]:
        """What the last builds knew of a target's actions, by the first file that each makes."""
        return History(self.state_folder / "history").of_target(label)

    def last_build(self) -> list[dict[str, Any]]:
        return last_build(self.state_folder)

    def clean(self, *, expunge: bool = False) -> None:
        """Removes all outputs; with `expunge` also this workspace's memory."""
        if not self.workspace.output.exists():
            return
        with self._locked(_LOCK_PATIENCE_S):
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

    def _execute(self, state: State, request: Request, plan: _Plan, *, publish: bool = True) -> Execution:
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
            self.state_folder.mkdir(parents=True)
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

    def _tell_waiting(self, holder: str) -> None:
        self.observe(PhaseStarted(f"waiting for another build of this workspace ({holder})"))

    def _reads(self, loaded: LoadResult, started_ns: int) -> Reads:
        root = self.workspace.root
        return Reads(
            started_ns=started_ns,
            files={
                str(root / path): FileDigest(digest, os.access(root / path, os.X_OK))
                for path, digest in loaded.files_read.items()
            },
            folders=frozenset(str(root / folder) for folder in loaded.directories),
            output=str(self.workspace.output),
        )

    def _dependencies(self, started_ns: int, plan: _Plan) -> Dependencies:
        root = f"{self.workspace.root}/"
        tools = {tool.name: tool.path for action in plan.actions for tool in action.tools}
        read = {artifact.location or artifact.path for artifact in plan.sources}
        absent = {path for path in read if not os.path.exists(self.workspace.root / path)}
        files = {*plan.loaded.files_read, *(read - absent), *watched.files(tools)}
        folders = {*plan.loaded.directories, *map(self._nearest_folder, absent), *watched.folders()}
        # Tools that are built lie in the cache and are younger than the build; like outputs they are ours.
        outputs = {path for path in tools.values() if os.path.isfile(path)}
        outputs |= {str(self.workspace.path_of(a)) for a in plan.wanted if not a.source}
        return Dependencies(
            started_ns=started_ns,
            files=tuple(sorted(path.removeprefix(root) for path in files)),
            folders=tuple(sorted(folder or "." for folder in folders)),
            outputs=tuple(sorted(path.removeprefix(root) for path in outputs)),
        )

    def _nearest_folder(self, path: str) -> str:
        """The folder whose entries change when the absent file, or a folder on the way to it, appears."""
        return next(p for p in PurePath(path).parents if (self.workspace.root / p).is_dir()).as_posix()


@dataclass(frozen=True)
class _Plan:
    """What a request comes to: for each target the files that are wanted, and the actions behind them."""

    request: Request
    loaded: LoadResult
    analysis: Analysis
    goals: Mapping[Label, Sequence[Artifact]]

    @cached_property
    def wanted(self) -> tuple[Artifact, ...]:
        return tuple(artifact for files in self.goals.values() for artifact in files)

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        return self.analysis.needed_for(self.wanted)

    @cached_property
    def sources(self) -> frozenset[Artifact]:
        """The files of the workspace that actions read, or that are asked for themselves."""
        read = {a for action in self.actions for _, a in action.inputs if a.source}
        return frozenset(read | {artifact for artifact in self.wanted if artifact.source})

    def results(self, execution: Execution, store: DiskStore) -> tuple[TargetResult, ...]:
        return tuple(self._result(label, execution, store) for label in self.goals)

    def _result(self, label: Label, execution: Execution, store: DiskStore) -> TargetResult:
        target = self.loaded.graph[label]
        files = self.goals[label]
        last = [execution.outcome_of(action) for action in self._makers(files)]
        verdict = _verdict(self.analysis.targets[label].providers, files, execution, store)
        problem = self._problem(files, last, execution) or (
            _failed_gate(verdict, self.request.style) if verdict else ""
        )
        return TargetResult(
            label=str(label),
            kind=target.kind.removesuffix(" rule"),
            ok=not problem,
            files=tuple(artifact.path for artifact in files if artifact in execution.produced),
            verdict=verdict,
            problem=problem,
            diagnostics=_words(verdict, files, execution, store) if verdict and problem else (),
            test=target.test,
            cached=all(outcome.status in (Status.HIT, Status.SKIPPED) for outcome in last),
        )

    def _makers(self, files: Sequence[Artifact]) -> list[Action]:
        """The actions that make the files themselves, without those behind them."""
        producer = self.analysis.producer
        return [producer[artifact] for artifact in files if artifact in producer]

    def _problem(self, files: Sequence[Artifact], last: Sequence[Outcome], execution: Execution) -> str:
        """In words the first action that did not end well and that the files need, however far behind."""
        if all(outcome.status in _SOUND for outcome in last):
            return ""
        needed = [execution.outcome_of(action) for action in self.analysis.needed_for(files)]
        return _first_failure(needed)


def open_runner(*, warm: bool) -> Runner:
    """Runs Python tools in forks of one warm worker, or everything in fresh processes."""
    return WarmWorker(BASE_ENVIRONMENT) if warm else FreshProcesses()


def _are_settled(signatures: Sequence[int], files: int, folders: int, started_ns: int) -> bool:
    """Whether nothing that was read can have changed since the build began without looking different now."""
    times = [(signatures[at], signatures[at + 1]) for at in range(0, 4 * files, 4)]
    times += [(signatures[at], signatures[at + 1]) for at in range(4 * files, 4 * files + 3 * folders, 3)]
    return all(is_settled(mtime, ctime, started_ns) for mtime, ctime in times)


def _roots(loaded: LoadResult, verb: str) -> tuple[Label, ...]:
    """The targets that a command is about: those that were named, their tests, their benchmarks."""
    if verb == "build":
        return loaded.roots
    tests = tuple(loaded.graph.tests(loaded.roots))
    return tests if verb == "test" else tuple(t for t in tests if loaded.graph[t].kind == _BENCHMARK)


def _goals(providers: Providers, request: Request) -> tuple[Artifact, ...]:
    """The files that a request wants of a target: all, or those of the level of proof that was asked for."""
    levels = providers.get("Levels") or {}
    level = {"build": request.verify, "bench": "bench"}.get(request.verb, "")
    return tuple(levels.get(level, providers.files))


def _is_unbuilt(execution: Execution, artifact: Artifact) -> bool:
    """Whether the file is absent for another reason than that nothing needs it."""
    outcomes = (o for o in execution.outcomes if any(a == artifact for _, a in o.action.outputs))
    return all(outcome.status is not Status.SKIPPED for outcome in outcomes)


def _verdict(
    providers: Providers, files: Sequence[Artifact], execution: Execution, store: DiskStore
) -> Mapping[str, Any] | None:
    """The content of the verdict file among the files, if the rule has one; of the last, which says most."""
    named = providers.get("Verdict")
    verdicts = [a for a in files if a == named or a.path.endswith("/verdict.json")]
    found = verdicts[-1] if verdicts else None
    made = execution.produced.get(found) if found is not None else None
    data = store.read(made.digest) if made is not None else None
    return dict(json.loads(data)) if data is not None else None


def _words(
    verdict: Mapping[str, Any], files: Sequence[Artifact], execution: Execution, store: DiskStore
) -> tuple[Diagnostic, ...]:
    """What a negative verdict has to say, and where the two sides differ."""
    items = list(verdict.get("diagnostics", ()))
    for artifact in files:
        made = execution.produced.get(artifact)
        if artifact.path.endswith("/differences.json") and made is not None:
            items += json.loads(store.read(made.digest) or b"[]")
    return tuple(Diagnostic.from_json(item) for item in items)


def _first_failure(needed: Sequence[Outcome]) -> str:
    for status, words in ((Status.FAILED, "failed"), (Status.CANCELLED, "was not built")):
        for outcome in needed:
            if outcome.status is status:
                action = outcome.action
                return " ".join(part for part in (action.mnemonic, action.detail, words) if part)
    return ""


def _failed_gate(verdict: Mapping[str, Any], style: str) -> str:
    for gate in verdict.get("gates", ()):
        if gate["state"] in ("failed", "python-fails"):
            return f"gate {gate['gate']}: {gate['state']}" + (f": {gate['why']}" if gate["why"] else "")
    if not verdict.get("ok", True):
        return "its verdict is negative"
    for kernel in verdict.get("kernels", ()) if style else ():
        if STYLES.index(kernel["style"]) > STYLES.index(style):
            return f"{kernel['kernel']} is {kernel['style']}, asked for was {style} or safer"
    return ""
