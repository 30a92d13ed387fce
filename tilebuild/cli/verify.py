"""`verify`: derives every recorded verdict again. Knows no row's form."""

from __future__ import annotations

import click

from tilebuild.cli import options
from tilebuild.device_work import ledger_of
from tilebuild.report import ExitCode
from tilebuild.reporting.text import counted


@click.command()
def command() -> int:
    """Derive every verdict in the ledger again from its numbers; fail on any that does not hold."""
    session = options.open_session()
    ledger = ledger_of(session)
    problems = list(ledger.problems())
    for path, row, fact in problems:
        place = path.relative_to(session.workspace.root).as_posix()
        click.echo(": ".join(part for part in (place, row, fact) if part), err=True)
    files, rows = ledger.counts()
    if problems:
        click.echo(f"verify: {counted(len(problems), 'problem')} in {counted(files, 'file')} of the ledger")
        return ExitCode.BUILD_FAILED
    click.echo(f"verify: {counted(rows, 'verdict')} in {counted(files, 'file')} of the ledger hold")
    return ExitCode.OK
