"""Says in the one shape of messages how an action failed. Knows what a command leaves behind, not how it
ran.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path

from tilebuild.action import Action, Tool
from tilebuild.diagnostics import Blame, Diagnostic, Note
from tilebuild.execution.folder import ActionFolder, tail


def tool_of(action: Action) -> Tool:
    return next(tool for tool in action.tools if tool.name == action.argv[0])


def ended_badly(action: Action, folder: ActionFolder, status: int) -> tuple[Diagnostic, ...]:
    """The command exited with a status other than 0, or was ended by a signal (negative)."""
    reported = _reported(folder.diagnostics)
    if reported and status > 0:
        return reported
    if status < 0:
        fact = f"{_name(action)} was ended by {_signal_name(-status)}"
        return (Diagnostic(fact, Blame.TOOLCHAIN, notes=_printed(folder)),)
    fact = f"{_name(action)} exited with status {status}"
    return (Diagnostic(fact, _blame(action), notes=_printed(folder)),)


def timed_out(action: Action, folder: ActionFolder) -> tuple[Diagnostic, ...]:
    fact = f"{_name(action)} was stopped after {action.timeout_s:g} s"
    return (Diagnostic(fact, Blame.TOOLCHAIN, notes=_printed(folder)),)


def outputs_missing(action: Action, folder: ActionFolder, names: tuple[str, ...]) -> tuple[Diagnostic, ...]:
    listed = ", ".join(repr(name) for name in names)
    fact = f"{_name(action)} succeeded without making {listed}"
    return (Diagnostic(fact, _blame(action), notes=_printed(folder)),)


def cannot_start(action: Action, error: OSError) -> tuple[Diagnostic, ...]:
    tool = tool_of(action)
    fact = f"cannot start the tool {tool.name!r} ({tool.path}): {error.strerror}"
    return (Diagnostic(fact, Blame.TOOLCHAIN, help="tilebuild doctor"),)


def input_unreadable(action: Action, path: str, error: OSError) -> tuple[Diagnostic, ...]:
    return (Diagnostic(f"{_name(action)} needs {path}: {error.strerror or error}", Blame.BUILD_FILE),)


def input_unstable(action: Action, path: str) -> tuple[Diagnostic, ...]:
    fact = f"{path} keeps changing while {_name(action)} reads it"
    return (Diagnostic(fact, Blame.BUILD_FILE, help="build again when nothing writes to it"),)


def blob_lost(action: Action, name: str) -> tuple[Diagnostic, ...]:
    fact = f"the cache lost {name} while {_name(action)} was about to read it"
    return (Diagnostic(fact, Blame.TOOLCHAIN, help="build again: what is missing is made anew"),)


def _name(action: Action) -> str:
    return " ".join(part for part in (action.mnemonic, action.label, action.detail) if part)


def _blame(action: Action) -> Blame:
    return Blame.TILEBUILD if tool_of(action).module else Blame.BUILD_FILE


def _printed(folder: ActionFolder) -> tuple[Note, ...]:
    text = tail(folder.stderr) or tail(folder.stdout)
    lines = "".join(f"\n    {line}" for line in text.splitlines())
    return (Note(f"it printed{lines}"),) if text else ()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _reported(path: Path) -> tuple[Diagnostic, ...]:
    try:
        return tuple(Diagnostic.from_json(item) for item in json.loads(path.read_bytes()))
    except FileNotFoundError:
        return ()
    except (ValueError, KeyError, TypeError) as error:
        return (Diagnostic(f"a tool wrote unreadable diagnostics: {error}", Blame.TILEBUILD),)
