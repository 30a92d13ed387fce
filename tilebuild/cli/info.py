"""`info`: paths and settings of the workspace. Knows no command that uses them."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click

from tilebuild.cli import options
from tilebuild.diagnostics import did_you_mean
from tilebuild.session.session import Session
from tilebuild.settings import names


@click.command()
@click.argument("key", required=False)
@click.pass_context
def command(ctx: click.Context, /, key: str | None) -> int:
    """Print the value of KEY, or all of them; `settings` prints the settings."""
    facts = _facts(options.open_session())
    if key == "settings":
        facts = {name: value for name, value in facts.items() if name in names()}
    elif key is not None and key not in facts:
        raise click.UsageError(
            f"no key {key!r}; {did_you_mean(key, facts) or 'keys are ' + ', '.join(facts)}", ctx
        )
    elif key is not None:
        click.echo(facts[key])
        return 0
    for name, value in facts.items():
        click.echo(f"{name}: {value}")
    return 0


def _facts(session: Session) -> Mapping[str, str]:
    facts = {
        "workspace": str(session.workspace.root),
        "output": str(session.workspace.output),
        "state": str(session.state_folder),
        "cache": str(session.cache_folder),
        "python": sys.executable,
    }
    facts |= {name: _text(session.settings.value(name)) for name in names() if name != "output"}
    return dict(sorted(facts.items()))


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
