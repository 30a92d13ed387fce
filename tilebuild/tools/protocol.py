"""How an action's tool talks to the engine: argv in, files out, diagnostics as JSON. Knows no single tool.

A tool is a module with `main(argv) -> int`. It runs in a folder of its own that holds exactly its inputs,
under their local names, and writes its outputs there. A negative *result* is a file and exit status 0; a tool
that cannot give a result raises `DiagnosticError`, which `run` writes to the file named by
`TILEBUILD_DIAGNOSTICS` (or to standard error) before it exits with 1. What the machine is to blame for ends
it with a status of `tilebuild.faults`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence

from tilebuild import faults
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError


def run(main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> int:
    """Runs a tool's `main`, turning what it raises into diagnostics. Returns the exit status."""
    try:
        return main(argv)
    except Unreadable as error:
        report(error.diagnostics, error.path)
        return 1
    except DiagnosticError as error:
        report(error.diagnostics)
        return 1
    except Exception as error:
        if code := faults.exit_code(error):
            report((faults.diagnostic(error),))
            return code
        # A bug of ours must reach the user as one, with its traceback.
        report(
            (Diagnostic(f"{type(error).__name__}: {error}", Blame.TILEBUILD, help=traceback.format_exc()),)
        )
        return 1


class Unreadable(DiagnosticError):
    """A file of the user reads a path that is not there for it, which is no property of the file: the engine
    knows whether it could be declared.
    """

    def __init__(self, diagnostic: Diagnostic, path: str) -> None:
        super().__init__(diagnostic)
        self.path = path


def report(diagnostics: Sequence[Diagnostic], unreadable: str = "") -> None:
    path = os.environ.get("TILEBUILD_DIAGNOSTICS")
    if path:
        items = [{**d.to_json(), "unreadable": unreadable} for d in diagnostics]
        with (
            contextlib.suppress(OSError),
            open(path, "w", encoding="utf-8") as file,
        ):  # the status says enough
            json.dump(items, file)
    else:
        print("\n".join(d.render() for d in diagnostics), file=sys.stderr)


def tool_path(name: str) -> str:
    """Where a declared tool lies on this machine. Raises `DiagnosticError` if it was not declared."""
    variable = "TILEBUILD_TOOL_" + name.upper().replace("-", "_")
    path = os.environ.get(variable, "")
    if not path:
        raise DiagnosticError(
            Diagnostic(
                f"the tool {name!r} was not declared by this action ({variable} is unset)", Blame.TILEBUILD
            )
        )
    return path
