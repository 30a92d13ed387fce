"""`fetch`: brings what builds need from the network. Knows no registry; works outside a workspace."""

from __future__ import annotations

import click

from tilebuild import toolchain


@click.command()
def command() -> int:
    """Bring the crates of the Rust build, so that builds are offline afterwards."""
    toolchain.fetch(click.echo)
    return 0
