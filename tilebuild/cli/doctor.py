"""`doctor`: what is installed and what is not. Knows no single check; works outside a workspace."""

from __future__ import annotations

import sys

import click

from tilebuild import toolchain
from tilebuild.cli.running import wants_colour
from tilebuild.report import ExitCode
from tilebuild.reporting.text import Style, columns


@click.command()
def command() -> int:
    """Check what builds need; for all that is missing, say the one command that fixes it."""
    style = Style(wants_colour(sys.stdout.isatty()))
    checks = toolchain.doctor()
    rows = columns([["ok" if check.ok else "MISSING", check.name, check.detail] for check in checks])
    for check, row in zip(checks, rows, strict=True):
        click.echo(row if check.ok else style.bad(row))
        if check.fix:
            click.echo(f"         fix: {check.fix}")
    return ExitCode.OK if all(check.ok for check in checks) else ExitCode.LOCAL_ENVIRONMENT
