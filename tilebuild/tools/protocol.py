"""How an action's tool talks to the engine: argv in, files out, diagnostics as JSON. Knows no single tool.

A tool is a module with `main(argv) -> int`. It runs in a folder of its own that holds exactly its inputs,
under their local names, and writes its outputs there. A negative *result* is a file and exit status 0; a tool
that cannot give a result raises `DiagnosticError`, which `run` writes to the file named by
`TILEBUILD_DIAGNOSTICS` (or to standard error) before it exits with 1.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence

from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError


def run(main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> int:
    """Runs a tool's `main`, turning what it raises into diagnostics. Returns the exit status."""
    try:
        return main(argv)
    except DiagnosticError as error:
        report(error.diagnostics)
        return 1
    except Exception as error:  # a bug of ours must reach the user as one, with its traceback
        report(
            (Diagnostic(f"{type(error).__name__}: {error}", Blame.TILEBUILD, help=traceback.format_exc()),)
        )
        return 1


def report(diagnostics: Sequence[Diagnostic]) -> None:
    path = os.environ.get("TILEBUILD_DIAGNOSTICS")
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump([d.to_json() for d in diagnostics], file)
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
