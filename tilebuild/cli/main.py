"""From arguments to an exit code. Knows the names of the commands; each is a file of its own, loaded
when it is called.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace

import click

from tilebuild import faults
from tilebuild.cli.invocation import Invocation
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError, did_you_mean
from tilebuild.execution.lock import LockHeld
from tilebuild.report import ExitCode

#: Command, the module in this folder that has it as `command`, and what it does in one line.
COMMANDS = {
    "build": ("build", "Build targets and prove their ports equal."),
    "test": ("test", "Run the tests of targets."),
    "bench": ("bench", "Benchmark ports against their originals."),
    "bundle": ("bundle", "Verify on another machine: export, run, import."),
    "verify": ("verify", "Derive every recorded verdict again."),
    "report": ("report", "Write all verdicts as one page for a browser."),
    "watch": ("watch", "Build again after each saved file."),
    "query": ("query", "Ask questions about the target graph."),
    "show": ("show", "Look at what was made of a kernel."),
    "why": ("why", "Say why actions of a target ran, or would run."),
    "log": ("log", "List what the last build did."),
    "clean": ("clean", "Remove all outputs."),
    "cache": ("cache", "Look after the cache: stats, gc, verify, purge."),
    "info": ("info", "Print paths and settings of the workspace."),
    "doctor": ("doctor", "Check what is installed, and say what fixes it."),
    "fetch": ("fetch", "Bring what builds need, so that they are offline."),
}

_SIGPIPE = 128 + 13


class Commands(click.Group):
    """The commands of the table, without loading any of them before it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"tilebuild.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            hint = did_you_mean(args[0], COMMANDS) or f"commands are {', '.join(COMMANDS)}"
            raise click.UsageError(f"no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-C", "folder", metavar="DIR", help="Run as if started in DIR.")
@click.version_option(package_name="tilebuild", prog_name="tilebuild")
@click.pass_context
def commands(ctx: click.Context, folder: str | None) -> None:
    """Port cuTile Python kernels to cuTile Rust, and prove each port equal."""
    if folder is not None:
        try:
            os.chdir(folder)
        except OSError as error:
            raise click.UsageError(f"cannot enter {folder}: {error.strerror}") from None
        ctx.obj = replace(ctx.obj, folder="")


def run(argv: Sequence[str]) -> int:
    """Runs one command; whatever goes wrong becomes one message and an exit code."""
    gc.disable()  # a command makes hardly any garbage with cycles, and then the process ends
    try:
        folder = os.getcwd()
        typed = Invocation(argv, folder, typed_in=folder)
        result = commands.main(list(argv[1:]), prog_name="tilebuild", standalone_mode=False, obj=typed)
        sys.stdout.flush()
        return int(result or 0)
    except click.ClickException as error:
        error.show()
        return ExitCode.BAD_COMMAND_LINE
    except click.exceptions.Exit as end:
        return end.exit_code
    except (KeyboardInterrupt, click.Abort):
        print("interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; Python would complain about it once more while it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _SIGPIPE
    except Exception as error:
        diagnostics, code = explain(error)
        _say(diagnostics, code, as_json="--json" in argv)
        return code


def explain(error: Exception) -> tuple[tuple[Diagnostic, ...], ExitCode]:
    """What to say of an exception that ended a command."""
    if isinstance(error, DiagnosticError):
        return error.diagnostics, _code_of(error.diagnostics)
    if isinstance(error, LockHeld):
        fact = f"another build of this workspace does not end: {error}"
        return (
            Diagnostic(fact, Blame.TILEBUILD, help="wait for it, or end that process"),
        ), ExitCode.LOCK_HELD
    if code := faults.exit_code(error):
        return (faults.diagnostic(error),), ExitCode(code)
    text = traceback.format_exc()
    fact = f"{type(error).__name__}: {error}"
    help = f"this is a bug of tilebuild; please report it with this text\n{text}"
    return (Diagnostic(fact, Blame.TILEBUILD, help=help),), ExitCode.INTERNAL_ERROR


def _code_of(diagnostics: Sequence[Diagnostic]) -> ExitCode:
    if all(diagnostic.blame is Blame.TOOLCHAIN for diagnostic in diagnostics):
        return ExitCode.LOCAL_ENVIRONMENT
    return ExitCode.ANALYSIS_FAILED


def _say(diagnostics: Sequence[Diagnostic], code: ExitCode, as_json: bool) -> None:
    if as_json:
        from tilebuild.reporting.json_lines import JsonReporter, failure_event

        JsonReporter(sys.stdout).write(failure_event(diagnostics, code))
    else:
        print("\n".join(diagnostic.render() for diagnostic in diagnostics), file=sys.stderr)
