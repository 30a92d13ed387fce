"""`cache`: looks after the cache on this machine. Knows no build."""

from __future__ import annotations

import click

from tilebuild.cache import eviction
from tilebuild.cli import options
from tilebuild.report import ExitCode
from tilebuild.reporting.text import counted
from tilebuild.settings import parse_size


@click.group()
def command() -> None:
    """Look after the cache that all workspaces of this user share."""


@command.command()
def stats() -> int:
    """Say what the cache holds."""
    session = options.open_session()
    usage = eviction.usage(session.cache_folder)
    limit = session.settings.cache.limit_bytes
    click.echo(f"folder: {session.cache_folder}")
    click.echo(f"results: {usage.results}")
    click.echo(f"blobs: {usage.blobs}")
    click.echo(f"bytes: {usage.bytes} of {limit}")
    return 0


@command.command()
@click.option("--limit", help="Size to come down to, instead of that of the settings: `2GB`.")
@click.option(
    "--older-than", "days", type=click.FloatRange(min=0), help="Also what was not used for so many days."
)
@click.pass_context
def gc(ctx: click.Context, /, limit: str | None, days: float | None) -> int:
    """Drop what was not used for longest."""
    session = options.open_session()
    try:
        size = session.settings.cache.limit_bytes if limit is None else parse_size(limit)
    except ValueError as error:
        raise click.UsageError(str(error), ctx) from None
    age_s = float("inf") if days is None else days * 86_400
    try:
        dropped = eviction.collect(session.cache_folder, size, age_s)
    except eviction.StoreInUse:
        click.echo("a build uses the cache; nothing was dropped", err=True)
        return ExitCode.LOCK_HELD
    results, blobs = counted(dropped.results, "result"), counted(dropped.blobs, "blob")
    click.echo(f"dropped {results}, {blobs}, {dropped.bytes} bytes")
    return 0


@command.command()
def verify() -> int:
    """Hash every blob; damaged ones are removed and will be made anew."""
    damaged = eviction.damaged(options.open_session().cache_folder)
    for path in damaged:
        path.unlink(missing_ok=True)
        click.echo(f"damaged, removed: {path.name}")
    click.echo(f"{counted(len(damaged), 'damaged blob')}")
    return ExitCode.BUILD_FAILED if damaged else ExitCode.OK


@command.command()
def purge() -> int:
    """Remove everything from the cache."""
    folder = options.open_session().cache_folder
    try:
        eviction.collect(folder, 0)
    except eviction.StoreInUse:
        click.echo("a build uses the cache; nothing was removed", err=True)
        return ExitCode.LOCK_HELD
    return 0
