"""Options that several commands share, and the session they make. Knows no single command."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from tilebuild.diagnostics import DiagnosticError
from tilebuild.events import Event
from tilebuild.session.request import Request
from tilebuild.session.session import Session

F = TypeVar("F", bound=Callable[..., Any])


class WrongWorkspace(click.ClickException):
    """There is no workspace here, or its settings are wrong: the command line cannot be understood."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        print(self.message, file=file or sys.stderr)


def architectures(command: F) -> F:
    return click.option(
        "--arch",
        "architectures",
        multiple=True,
        metavar="ARCH",
        help="Architecture to build for, instead of those of the settings; may be repeated.",
    )(command)


def allow_pending(command: F) -> F:
    return click.option(
        "--allow-pending", is_flag=True, help="Exit with 0 although verdicts are still to be made on a GPU."
    )(command)


def execution(command: F) -> F:
    """What `build` and `test` have in common."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="One event per line, for programs."),
        click.option("--no-workers", is_flag=True, help="Run each tool in a fresh process."),
        click.option("--no-sandbox", is_flag=True, help="Let actions read what they do not declare."),
        click.option("-j", "--jobs", type=click.IntRange(min=1), help="Actions that run at once."),
        click.option("-k", "--keep-going", is_flag=True, help="Build what can be built after a failure."),
        click.option("--dry-run", is_flag=True, help="Only say what would run, and why."),
    ):
        command = option(command)
    return command


def open_session(
    architectures: tuple[str, ...] = (), observe: Callable[[Event], None] = lambda event: None
) -> Session:
    """A session in the workspace around the current folder, with its settings read."""
    wanted = [name.strip() for text in architectures for name in text.split(",") if name.strip()]
    session = Session(Path.cwd(), {"architectures": wanted or None}, os.environ, observe)
    try:
        session.open()
    except DiagnosticError as error:
        raise WrongWorkspace(str(error)) from error
    return session


def request(
    verb: str,
    patterns: tuple[str, ...],
    *,
    jobs: int | None,
    keep_going: bool,
    dry_run: bool,
    no_workers: bool,
    no_sandbox: bool,
    as_json: bool,
    style: str = "",
    verify: str = "gpu",
    allow_pending: bool = False,
) -> Request:
    """The request that the shared options describe."""
    return Request(
        verb=verb,
        patterns=patterns,
        jobs=jobs or 0,
        keep_going=keep_going,
        dry_run=dry_run,
        workers=not no_workers,
        sandbox=not no_sandbox,
        verify=verify,
        style=style,
        allow_pending=allow_pending,
    )
