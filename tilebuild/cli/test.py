"""`test`: runs the tests among targets and those derived from them. Knows no verb but through the session."""

from __future__ import annotations

from typing import Any

import click

from tilebuild.cli import options
from tilebuild.cli.running import run


@click.command()
@click.argument("patterns", nargs=-1, required=True)
@options.architectures
@options.allow_pending
@options.execution
@click.pass_context
def command(
    ctx: click.Context, /, patterns: tuple[str, ...], architectures: tuple[str, ...], **common: Any
) -> int:
    """Run the tests that PATTERNS name; an operator stands for its tests."""
    request = options.request("test", patterns, **common)
    return run(ctx, request, architectures, as_json=common["as_json"])
