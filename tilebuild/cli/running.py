"""What `build`, `test` and `bench` share: work on a GPU, reports, and the memo for the next time."""

from __future__ import annotations

import os
import sys

import click

from tilebuild.cli.invocation import Invocation
from tilebuild.cli.options import open_session
from tilebuild.report import ExitCode, Report
from tilebuild.reporting.json_lines import JsonReporter
from tilebuild.reporting.lines import LineReporter
from tilebuild.reporting.live import LiveReporter
from tilebuild.reporting.summary import summary, up_to_date
from tilebuild.reporting.text import Style
from tilebuild.session.request import Request
from tilebuild.session.session import Session
from tilebuild.settings import Settings

_NVIDIA_DEVICE = "/dev/nvidiactl"


def run(ctx: click.Context, request: Request, architectures: tuple[str, ...], *, as_json: bool) -> int:
    reporter = reporter_for(as_json=as_json)
    session = open_session(architectures, reporter)
    try:
        report = _run(session, request)
    finally:
        reporter.close()
    if isinstance(reporter, JsonReporter):
        reporter.write(report.to_json())
        return report.exit_code
    _show(report)
    invocation = ctx.find_object(Invocation)
    if report.exit_code is ExitCode.OK and not report.dry_run and invocation and invocation.folder:
        text = up_to_date(report, Style(wants_colour(sys.stdout.isatty())))
        session.remember(invocation.argv, invocation.folder, text)
    return report.exit_code


def _run(session: Session, request: Request) -> Report:
    """Runs the request; before that, on a machine with a GPU, what it lacks there."""
    python = gpu_python(session.settings)
    if python is None:
        return session.run(request)
    from tilebuild import device_work  # it brings NumPy, which most machines do without here

    failed = device_work.run_missing(session, request, python)
    return device_work.with_failures(session.run(request), failed)


def gpu_python(settings: Settings) -> str | None:
    """The Python that runs GPU work on this machine; nothing where there is no GPU, or no need for one."""
    if not settings.gpu.devices:
        return None
    return settings.gpu.runner or (sys.executable if os.path.exists(_NVIDIA_DEVICE) else None)


def wants_colour(terminal: bool) -> bool:
    return terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def reporter_for(*, as_json: bool) -> JsonReporter | LiveReporter | LineReporter:
    if as_json:
        return JsonReporter(sys.stdout)
    if wants_colour(sys.stderr.isatty()):
        return LiveReporter(sys.stderr, Style(True))
    return LineReporter(sys.stderr)


def _show(report: Report) -> None:
    for line in report.printed:
        print(line, file=sys.stderr)
    for message in report.messages:
        print(message.render(), file=sys.stderr)
    sys.stderr.flush()
    print(summary(report, Style(wants_colour(sys.stdout.isatty()))), end="", flush=True)
    if report.exit_code is ExitCode.NO_TESTS:
        print("no tests found", file=sys.stderr)
