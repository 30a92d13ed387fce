"""`why`: what of a target would run now and why; if nothing, why the last build did what it did. Knows
no key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import click

from tilebuild.cli import options
from tilebuild.diagnostics import DiagnosticError
from tilebuild.events import Outcome, Status
from tilebuild.execution.history import Record
from tilebuild.reporting.text import counted, seconds
from tilebuild.session.request import Request

#: So many actions with the same reasons are named one by one.
_NAMED = 2


@click.command()
@click.argument("target")
@options.architectures
def command(target: str, architectures: tuple[str, ...]) -> int:
    """Say why actions of TARGET would run; if all is built, why they ran the last time."""
    session = options.open_session(architectures)
    report = session.run(Request("build", (target,), dry_run=True, keep_going=True))
    if report.problems:
        raise DiagnosticError(*report.problems)
    due = [outcome for outcome in report.outcomes if outcome.status is Status.WOULD_RUN]
    failed = [outcome for outcome in report.outcomes if outcome.status is Status.FAILED]
    lines = list(_due([*failed, *due]))
    waiting = sum(outcome.status is Status.MAY_RUN for outcome in report.outcomes)
    if waiting:
        lines.append(f"{counted(waiting, 'action')} may run after those, if what they make has changed")
    if not lines:
        lines.append(f"{target} is built: {counted(len(report.outcomes), 'result')} in the cache")
        for result in report.targets:
            lines += _last(session.records(result.label))
    click.echo("\n".join(lines))
    return 0


def _due(outcomes: list[Outcome]) -> Iterator[str]:
    rows = []
    for outcome in outcomes:
        action = outcome.action
        facts = (diagnostic.fact for diagnostic in outcome.diagnostics)
        name = " ".join(part for part in (action.mnemonic, action.detail) if part)
        rows.append((name, outcome.status.value, (*outcome.why, *facts)))
    yield from together(rows)


def _last(records: Mapping[str, Record]) -> Iterator[str]:
    """The records of the last build that did something for the target."""
    newest = max((record.when for record in records.values()), default=0.0)
    latest = [record for record in records.values() if record.when == newest]
    if latest:
        yield f"the last build that changed it had {counted(len(latest), 'new result')}:"
    rows = []
    for record in latest:
        found = "was in the cache" if record.status == Status.HIT.value else f"took {seconds(record.seconds)}"
        name = " ".join(part for part in (record.mnemonic, record.detail) if part)
        rows.append((name, found, tuple(record.why)))
    yield from together(rows)


def together(rows: Iterable[tuple[str, str, tuple[str, ...]]]) -> Iterator[str]:
    """Actions with the reasons they share: each reason once, under the names of all that have it.

    A row is the name of an action (its mnemonic first), how it ended, and why.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[tuple[str, str]]] = {}
    for name, ended, why in rows:
        groups.setdefault((name.partition(" ")[0], why), []).append((name, ended))
    for (mnemonic, why), members in groups.items():
        names = [f"{name} {ended}" for name, ended in members]
        if len(members) > _NAMED:
            ends = dict.fromkeys(ended for _, ended in members)
            said = f" {ends.popitem()[0]}" if len(ends) == 1 else ""
            names = [f"{mnemonic} ×{len(members)}{said}, the first of them {members[0][0]}"]
        yield from names
        yield from (f"  {line}" for line in why)
