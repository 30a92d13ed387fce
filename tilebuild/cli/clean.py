"""`clean`: removes outputs. Knows no output."""

from __future__ import annotations

import click

from tilebuild.cli import options


@click.command()
@click.option("--expunge", is_flag=True, help="Also forget what earlier builds did.")
def command(expunge: bool) -> int:
    """Remove all outputs of this workspace; the cache is shared and stays."""
    options.open_session().clean(expunge=expunge)
    return 0
