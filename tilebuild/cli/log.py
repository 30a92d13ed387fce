"""`log`: what the last build did, one action per line. Knows nothing of how it was decided."""

from __future__ import annotations

import json

import click

from tilebuild.cli import options


@click.command()
@click.option(
    "--all", "everything", is_flag=True, help="Also actions whose results were cached or not needed."
)
@click.option("--json", "as_json", is_flag=True, help="One action per line, for programs.")
def command(everything: bool, as_json: bool) -> int:
    """List the actions of the last build: status, seconds, what it was, key."""
    entries = options.open_session().last_build()
    if not entries:
        click.echo("there was no build yet", err=True)
    for entry in entries:
        if as_json:
            click.echo(json.dumps(entry))
        elif everything or entry["status"] in ("ran", "failed"):
            name = " ".join(part for part in (entry["mnemonic"], entry["label"], entry["detail"]) if part)
            key = entry["key"].partition("/")[0][:12] or "-"
            click.echo(f"{entry['status']:9} {entry['seconds']:8.3f} s  {key:12}  {name}")
    return 0
