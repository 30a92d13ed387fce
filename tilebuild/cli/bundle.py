"""`bundle`: carries GPU work to another machine and brings its verdicts back. Knows no device."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tilebuild import device_work
from tilebuild.cli import options
from tilebuild.cli.running import reporter_for
from tilebuild.device_class import DeviceClass
from tilebuild.device_work import RESULTS, Work
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError
from tilebuild.gpu import __main__ as runner
from tilebuild.report import ExitCode
from tilebuild.reporting.text import counted
from tilebuild.session.request import Request
from tilebuild.session.session import Session


@click.group()
def command() -> None:
    """Verify on another machine: export there, run there, import here."""


@command.command()
@click.argument("patterns", nargs=-1, required=True)
@click.option("--out", "folder", type=click.Path(path_type=Path), required=True, help="New folder to write.")
@click.option("--include-passed", is_flag=True, help="Also what has its verdict already.")
@click.option("--device", "name", help="Which required device class, where several wait.")
@options.architectures
def export(
    patterns: tuple[str, ...],
    folder: Path,
    include_passed: bool,
    name: str | None,
    architectures: tuple[str, ...],
) -> int:
    """Write what of PATTERNS waits for a GPU into a folder that needs Python, NumPy and CuPy only."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise click.UsageError(f"{folder} is there and not empty; name a new folder with --out")
    reporter = reporter_for(as_json=False)
    session = options.open_session(architectures, reporter)
    try:
        works, unbuilt = device_work.gather(session, Request("build", patterns, keep_going=True))
    finally:
        reporter.close()
    if unbuilt:
        fact = f"{', '.join(unbuilt)} cannot be built, so there is nothing to run of it"
        raise _error(fact, f"tilebuild build {' '.join(unbuilt)}")
    wanted = _wanted(session, works, include_passed)
    if not wanted:
        click.echo("every case has its verdict; --include-passed exports them all the same")
        return ExitCode.OK
    work, entries = _chosen(wanted, name)
    size = device_work.export(folder, work, entries)
    targets = {entry["target"] for entry in entries}
    counts = f"{counted(len(entries), 'case')} of {counted(len(targets), 'target')}"
    click.echo(f"{folder}: {counts} for {work.device}, {size / 1e6:.1f} MB")
    click.echo(f"  there: python3 {folder.name}/runner --out {RESULTS}")
    click.echo(f"  here:  tilebuild bundle import {RESULTS}")
    return ExitCode.OK


@command.command("run")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--out", "results", type=click.Path(path_type=Path), default=Path(RESULTS), show_default=True)
@click.option("--budget", type=float, default=600.0, show_default=True, help="Seconds to begin cases in.")
def run_command(folder: Path, results: Path, budget: float) -> int:
    """Run the bundle in FOLDER on the GPU of this machine; run again, it continues."""
    if not device_work.is_bundle(folder):
        raise click.UsageError(
            f"{folder} is no bundle; `tilebuild bundle export PATTERN --out DIR` writes one"
        )
    status = device_work.run_bundle(sys.executable, folder, results, budget)
    if status == runner.INCOMPLETE:
        click.echo("the budget is spent: run it again to continue", err=True)
    codes = {runner.OK: ExitCode.OK, runner.FAILED: ExitCode.TESTS_FAILED}
    codes |= {runner.INCOMPLETE: ExitCode.TESTS_FAILED, runner.BAD_COMMAND_LINE: ExitCode.BAD_COMMAND_LINE}
    return codes.get(status, ExitCode.LOCAL_ENVIRONMENT)


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def import_command(file: Path) -> int:
    """Record the verdicts in FILE, which the runner of a bundle wrote."""
    session = options.open_session()
    results = device_work.read_results(file)
    found = device_work.record(session, results)
    targets = sorted({row["target"] for row in found.rows})
    click.echo(f"recorded {counted(len(found.rows), 'verdict')} of {counted(len(targets), 'target')}")
    for target in targets:
        click.echo(f"  {target}")
    device = DeviceClass.from_json(results["device"])
    if device not in session.settings.gpu.classes:
        click.echo(f"nothing requires them: gpu.devices in the settings does not name {device}")
    if found.dropped:
        click.echo(f"dropped {counted(found.dropped, 'verdict')} of cases that are no more")
    for row in found.refused:
        reasons = "; ".join(row["reasons"])
        click.echo(f"FAILED {row['target']} {row['case']} {row['stage']}: {reasons}", err=True)
    return ExitCode.TESTS_FAILED if found.refused else ExitCode.OK


def _wanted(
    session: Session, works: Sequence[Work], include_passed: bool
) -> list[tuple[Work, list[Mapping[str, Any]]]]:
    """What there is to run, by device class."""
    if not works:
        help = (
            "name it in the settings, gpu.devices = ['NVIDIA H200/9.0/132'], and build for its architecture"
        )
        raise _error("no device class is required of these targets", help)
    ledger = device_work.ledger_of(session)
    found = [(work, work.everything() if include_passed else work.missing(ledger)) for work in works]
    return [(work, [*entries]) for work, entries in found if entries]


def _chosen(
    wanted: Sequence[tuple[Work, list[Mapping[str, Any]]]], name: str | None
) -> tuple[Work, list[Mapping[str, Any]]]:
    """The device class that is meant; a bundle is for one."""
    names = [work.device.name for work, _ in wanted]
    found = [item for item in wanted if name in (None, item[0].device.name, item[0].device.slug)]
    if len(found) != 1:
        fact = f"{name} is none of" if name else "a bundle is for one of"
        raise _error(f"{fact} the device classes that wait: {', '.join(names)}", "choose with --device")
    return found[0]


def _error(fact: str, help: str) -> DiagnosticError:
    return DiagnosticError(Diagnostic(fact, Blame.BUILD_FILE, help=help))
