"""`query`: answers questions about the target graph. Knows no query function."""

from __future__ import annotations

import click

from tilebuild.cli import options
from tilebuild.query.output import FORMATS, render


@click.command()
@click.argument("expression")
@click.option(
    "--output",
    type=click.Choice(tuple(FORMATS)),
    default="label",
    show_default=True,
    help="Form of the answer.",
)
def command(expression: str, output: str) -> int:
    """Answer EXPRESSION, for instance `deps(//kernels:softmax)` or `kind(tile_operator, //...)`."""
    session = options.open_session()
    result, loaded = session.query(expression)
    text = render(result, loaded.graph, output, str(session.workspace.root))
    click.echo(text, nl=bool(text) and not text.endswith("\n"))
    return 0
