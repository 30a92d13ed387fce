"""`build`: makes targets and shows what they are worth. Knows no verb but through the session."""

from __future__ import annotations

from typing import Any

import click

from tilebuild.cli import options
from tilebuild.cli.running import run
from tilebuild.port import STYLES
from tilebuild.session.request import VERIFY_LEVELS


@click.command()
@click.argument("patterns", nargs=-1, required=True)
@options.architectures
@click.option("--style", type=click.Choice(STYLES), help="Fail for a port less safe than this.")
@click.option(
    "--verify",
    type=click.Choice(VERIFY_LEVELS),
    default="gpu",
    show_default=True,
    help="How much to prove; gpu and bench: as far as this machine or the ledger can.",
)
@options.execution
@click.pass_context
def command(
    ctx: click.Context,
    /,
    patterns: tuple[str, ...],
    architectures: tuple[str, ...],
    style: str | None,
    verify: str,
    **common: Any,
) -> int:
    """Build what PATTERNS name: `//kernels:softmax`, `//kernels/...`, `:softmax`."""
    request = options.request("build", patterns, **common, style=style or "", verify=verify)
    return run(ctx, request, architectures, as_json=common["as_json"])
