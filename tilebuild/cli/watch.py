"""`watch`: from each saved file to the new verdict. Knows no verb but through the session and the sentinel.

It ends with Ctrl-C, and then with 8 as every command that was interrupted, so that nothing goes on after it
as if it had finished. Mistakes do not end it.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import click

from tilebuild.cli import options
from tilebuild.cli.invocation import Invocation
from tilebuild.cli.main import explain
from tilebuild.cli.running import wants_colour
from tilebuild.diagnostics import DiagnosticError
from tilebuild.events import EVENT_VERSION, Event
from tilebuild.execution.inputs import FileDigests
from tilebuild.execution.interrupts import Cancellation
from tilebuild.execution.process import Runner
from tilebuild.label import parse_pattern
from tilebuild.port import STYLES
from tilebuild.report import ExitCode, Report
from tilebuild.reporting.json_lines import JsonReporter, failure_event
from tilebuild.reporting.stages import Stages, Verdicts
from tilebuild.reporting.text import Style
from tilebuild.session.dependencies import Reads
from tilebuild.session.request import VERIFY_LEVELS, Request
from tilebuild.session.session import open_runner
from tilebuild.toolchain import watched
from tilebuild.watching.hints import EventHints, Hints, PollingHints, refusal, silent_file_system
from tilebuild.watching.loops import Loops
from tilebuild.watching.sentinel import News, Sentinel
from tilebuild.watching.snapshot import Change, Scope, signature

_SHOWN_CHANGES = 3


@click.command()
@click.argument("patterns", nargs=-1, required=True)
@options.architectures
@click.option("--style", type=click.Choice(STYLES), help="Fail for a port less safe than this.")
@click.option(
    "--verify",
    type=click.Choice(VERIFY_LEVELS),
    default=Request.verify,
    show_default=True,
    help="How much to prove.",
)
@click.option("-k", "--keep-going", is_flag=True, help="Build what can be built after a failure.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Actions that run at once.")
@click.option("--no-workers", is_flag=True, help="Run each tool in a fresh process.")
@click.option("--poll", is_flag=True, help="Look at the files twice a second instead of awaiting events.")
@click.option("--json", "as_json", is_flag=True, help="One event per line, for programs.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    patterns: tuple[str, ...],
    architectures: tuple[str, ...],
    style: str | None,
    verify: str,
    keep_going: bool,
    jobs: int | None,
    no_workers: bool,
    poll: bool,
    as_json: bool,
) -> int:
    """Build what PATTERNS name, and again after each saved file, until Ctrl-C."""
    for pattern in patterns:
        parse_pattern(pattern)
    root = options.open_session(architectures).workspace.root
    request = Request(
        "build",
        patterns,
        jobs=jobs or 0,
        keep_going=keep_going,
        workers=not no_workers,
        verify=verify,
        style=style or "",
    )
    gc.enable()  # this command stays
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, signal.default_int_handler)
    screen = (_JsonScreen if as_json else _TextScreen)(sys.stdout, root)
    digests = FileDigests()
    sentinel = Sentinel(_hints(root, poll, screen), digests.digest, screen.tell)
    tools = _Tools()
    runner = open_runner(warm=request.workers)
    sentinel.start()
    try:
        return _Watch(request, architectures, screen, sentinel, tools, runner).run()
    except _ToolsChanged:
        screen.tell("the tools have changed: starting again")
    finally:
        sentinel.close()
        runner.close()
    return _start_again(ctx)


class _ToolsChanged(Exception):
    """What this process knows of the tools that actions run is out of date."""


@dataclass
class _Watch:
    request: Request
    architectures: tuple[str, ...]
    screen: _TextScreen | _JsonScreen
    sentinel: Sentinel
    tools: _Tools
    runner: Runner

    def run(self) -> int:
        """One build, and one more after all news; returns when a person interrupts."""
        news: News | None = None
        loops = Loops()
        while True:
            cancellation = Cancellation()
            self.sentinel.building(cancellation.request)
            ended = self._build(cancellation, time.monotonic() if news is None else news.noticed)
            self.sentinel.building(None)
            if ended and not cancellation.requested:
                return ExitCode.INTERRUPTED
            gc.collect()
            if news is None:
                self.screen.tell("waiting for changes; Ctrl-C ends")
            ended_at = time.monotonic()
            news = self.sentinel.wait()
            self.screen.changed(news)
            if path := loops.note({change.path for change in news.changes}, news.noticed < ended_at):
                self.screen.tell(f"{path} changes whenever something is built: does a program write it?")
            if self.tools.have_changed():
                raise _ToolsChanged

    def _build(self, cancellation: Cancellation, began: float) -> bool:
        """Whether the build was interrupted. What is wrong is said, and changes nothing else."""
        try:
            session = options.open_session(self.architectures, self.screen.observe)
            session.on_reads = self._adopt
            session.runner = self.runner
            session.cancellation = cancellation
            report = session.run(self.request)
        except BrokenPipeError:
            raise
        except options.WrongWorkspace as error:
            problem = error.__cause__ if isinstance(error.__cause__, DiagnosticError) else error
            self.screen.failed(*explain(problem), time.monotonic() - began)
            return False
        except Exception as error:
            self.screen.failed(*explain(error), time.monotonic() - began)
            return False
        self.screen.built(report, time.monotonic() - began)
        return report.interrupted

    def _adopt(self, reads: Reads) -> None:
        scope = Scope(
            files=frozenset(reads.files) | reads.sources,
            folders=reads.folders,
            ignored=frozenset({reads.output}),
            read=reads.files,
            since_ns=reads.started_ns,
        )
        self.sentinel.adopt(scope, complete=reads.complete)
        if reads.complete:
            self.tools.note(reads)
            self.screen.begin(reads)


@dataclass
class _Tools:
    """The tools that actions run, as they were when their digests were made: once in a process."""

    _names: frozenset[str] = frozenset()
    _scope: Scope = field(default_factory=Scope)
    _before: tuple[object, ...] = ()

    def note(self, reads: Reads) -> None:
        names = self._names | {tool.name for action in reads.actions for tool in action.tools}
        if names != self._names:
            self._names = names
            self._scope = Scope(frozenset(watched.files(names)), frozenset(watched.folders()))
            self._before = signature(self._scope)

    def have_changed(self) -> bool:
        return signature(self._scope) != self._before


class _TextScreen:
    """One line per happening, in the order of happening."""

    def __init__(self, stream: TextIO, root: Path) -> None:
        self._stream = stream
        self._root = root
        self._style = Style(wants_colour(stream.isatty()))
        self._stages = Stages(stream, self._style)
        self._verdicts = Verdicts(self._style)

    def observe(self, event: Event) -> None:
        self._stages(event)

    def begin(self, reads: Reads) -> None:
        self._stages.begin(reads.actions)

    def changed(self, news: News) -> None:
        self._print(f"{time.strftime('%H:%M:%S')} {_in_words(news.changes, self._root)}")

    def built(self, report: Report, spent: float) -> None:
        self._stages.close()
        if report.interrupted:
            self._print(self._style.faint("  stopped; what was finished is kept"))
            return
        for line in (*report.printed, *(message.render() for message in report.messages)):
            self._print(line)
        for line in self._verdicts.lines(report, spent):
            self._print(line)

    def failed(self, diagnostics: Sequence[Any], code: ExitCode, spent: float) -> None:
        self._stages.close()
        self._verdicts.forget()
        for diagnostic in diagnostics:
            self._print(diagnostic.render())

    def tell(self, text: str) -> None:
        self._print(self._style.faint(text))

    def _print(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


class _JsonScreen:
    """The events of `build --json`, and before each further build one of what was saved."""

    def __init__(self, stream: TextIO, root: Path) -> None:
        self._root = root
        self._reporter = JsonReporter(stream)

    def observe(self, event: Event) -> None:
        self._reporter(event)

    def begin(self, reads: Reads) -> None:
        return None

    def changed(self, news: News) -> None:
        found = [{"path": _shown(change, self._root), "kind": change.kind} for change in news.changes]
        self._reporter.write({"version": EVENT_VERSION, "event": "changed", "files": found})

    def built(self, report: Report, spent: float) -> None:
        self._reporter.write(report.to_json())

    def failed(self, diagnostics: Sequence[Any], code: ExitCode, spent: float) -> None:
        self._reporter.write(failure_event(diagnostics, code))

    def tell(self, text: str) -> None:
        self._reporter.write({"version": EVENT_VERSION, "event": "notice", "text": text})


def _hints(root: Path, poll: bool, screen: _TextScreen | _JsonScreen) -> Hints:
    if poll:
        return PollingHints()
    if kind := silent_file_system(str(root)):
        screen.tell(f"{root} lies on {kind}, which tells of no changes: files are looked at twice a second")
        return PollingHints()
    try:
        return EventHints(str(root))
    except OSError as error:
        screen.tell(f"{refusal(error)}. Until then files are looked at twice a second")
        return PollingHints()


def _in_words(changes: Sequence[Change], root: Path) -> str:
    """`kernels/softmax.py saved`; of many files a few are named."""
    kinds = {change.kind for change in changes}
    word = kinds.pop() if len(kinds) == 1 else "changed"
    names = [_shown(change, root) for change in changes]
    more = len(names) - _SHOWN_CHANGES
    shown = ", ".join(names if more <= 1 else names[:_SHOWN_CHANGES])
    return f"{shown} and {more} more {word}" if more > 1 else f"{shown} {word}"


def _shown(change: Change, root: Path) -> str:
    return change.path.removeprefix(f"{root}/")


def _start_again(ctx: click.Context) -> int:
    """The same command in a new program; does not return."""
    invocation = ctx.find_object(Invocation)
    assert invocation is not None
    os.chdir(invocation.typed_in)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
