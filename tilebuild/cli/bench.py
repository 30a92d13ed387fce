"""`bench`: the speed of ports against their originals, from what was measured. Knows no verb but through the
session.
"""

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
    """Benchmark the operators that PATTERNS name: on the GPU of this machine, or from the ledger."""
    request = options.request("bench", patterns, **common)
    return run(ctx, request, architectures, as_json=common["as_json"])
