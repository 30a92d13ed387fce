"""Says in the one shape of messages how an action failed. Knows what a command leaves behind, not how it
ran.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tilebuild import faults
from tilebuild.action import Action, Tool
from tilebuild.diagnostics import Blame, Diagnostic, Note
from tilebuild.execution.folder import ActionFolder, tail

_FAULTS = (faults.OUT_OF_MEMORY, faults.LOCAL_ENVIRONMENT)
#: How programs complain about a file: `cat: a/b.txt: No such file or directory`.
_UNREAD = re.compile(r"([^\s:'\"]+)['\"]?: (?:No such file or directory|Permission denied)")


def tool_of(action: Action) -> Tool:
    return next(tool for tool in action.tools if tool.name == action.argv[0])


def ended_badly(
    action: Action, folder: ActionFolder, status: int, find: Callable[[str], str]
) -> tuple[Diagnostic, ...]:
    """The command exited with a status other than 0, or was ended by a signal (negative).

    `find` gives the name in the workspace of a path that the command tried to read, if it is there.
    """
    reported = _reported(folder.diagnostics, find)
    if reported and status > 0:
        return reported
    if fault := _fault(action, folder):
        return (replace(faults.diagnostic(fault), notes=_printed(folder)),)
    if status in _FAULTS:
        fact = f"{_name(action)} could not write what it had to say: the disk is full or the memory used up"
        return (Diagnostic(fact, Blame.TOOLCHAIN),)
    if status > 0 and (undeclared := _undeclared(action, folder, find)):
        return undeclared
    if status < 0:
        fact = f"{_name(action)} was ended by {_signal_name(-status)}"
        return (Diagnostic(fact, Blame.TOOLCHAIN, notes=_printed(folder)),)
    fact = f"{_name(action)} exited with status {status}"
    return (Diagnostic(fact, _blame(action), notes=_printed(folder)),)


def fault_of(action: Action, folder: ActionFolder, status: int) -> int:
    """The exit code if the machine is to blame for how the command ended, else 0."""
    if tool_of(action).module:
        return status if status in _FAULTS else 0
    fault = _fault(action, folder)
    return faults.exit_code(fault) if fault else 0


def _fault(action: Action, folder: ActionFolder) -> OSError | None:
    """What a program says of the machine, permissions aside; our own tools say it by their status."""
    if tool_of(action).module:
        return None
    return faults.said_in(tail(folder.stderr), _name(action), forbidden=False)


def _undeclared(action: Action, folder: ActionFolder, find: Callable[[str], str]) -> tuple[Diagnostic, ...]:
    """A program that complains about a file of the workspace."""
    text = "" if tool_of(action).module else tail(folder.stderr)
    names = dict.fromkeys(name for path in _UNREAD.findall(text) if (name := find(path)))
    return tuple(
        Diagnostic(
            f"{_name(action)} reads {name}, which is not declared",
            Blame.BUILD_FILE,
            help=f"add it to `srcs` of {action.label}",
            notes=_printed(folder),
        )
        for name in names
    )


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


def _from_tool(item: dict[str, Any], find: Callable[[str], str]) -> Diagnostic:
    found = Diagnostic.from_json(item)
    name = find(item["unreadable"]) if item.get("unreadable") else ""
    if not name:
        return found
    reader = found.span.path if found.span else "the action"
    return replace(found, fact=f"{reader} reads {name}, which is not declared")


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


def _reported(path: Path, find: Callable[[str], str]) -> tuple[Diagnostic, ...]:
    try:
        return tuple(_from_tool(item, find) for item in json.loads(path.read_bytes()))
    except FileNotFoundError:
        return ()
    except (ValueError, KeyError, TypeError) as error:
        return (Diagnostic(f"a tool wrote unreadable diagnostics: {error}", Blame.TILEBUILD),)
