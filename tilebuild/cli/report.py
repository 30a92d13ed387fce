"""`report`: one page with everything that is known of operators. Knows no verb but through the session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tilebuild.cli import options
from tilebuild.cli.running import reporter_for
from tilebuild.report import ExitCode
from tilebuild.reporting.page import page


@click.command()
@click.argument("patterns", nargs=-1)
@click.option("--out", "file", type=click.Path(path_type=Path), required=True, help="HTML file to write.")
@options.architectures
@options.execution
def command(patterns: tuple[str, ...], file: Path, architectures: tuple[str, ...], **common: Any) -> int:
    """Write the verdicts of PATTERNS, or of all operators, as one self-contained HTML page."""
    common |= {"keep_going": True}
    request = options.request("build", patterns or ("//...",), **common, verify="bench")
    reporter = reporter_for(as_json=common["as_json"])
    session = options.open_session(architectures, reporter)
    try:
        report = session.run(request)
    finally:
        reporter.close()
    file.write_text(page(report, session.workspace.root.name), encoding="utf-8")
    operators = sum("kernels" in (target.verdict or {}) and not target.test for target in report.targets)
    click.echo(f"{file}: {operators} operators, {file.stat().st_size / 1e3:.0f} kB")
    return ExitCode.OK
