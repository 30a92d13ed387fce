"""Which places of this machine an action may touch, and what keeps it to them. Knows no schedule and no tool
by name.

An action may read its private folder, the system, the interpreter with its libraries, and what its tools name
as theirs; it may write its private folder and what its tools name as such. Bubblewrap hides the rest; where
it does not work, Landlock refuses it; where that is absent, too, only the private folder keeps actions apart,
and the summary says so. Tools in forks of the warm worker are confined by Landlock.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tilebuild import landlock
from tilebuild.action import Action
from tilebuild.cache.sealed import read_sealed, write_sealed
from tilebuild.execution.process import Command
from tilebuild.landlock import Allowed

BUBBLEWRAP, LANDLOCK, NONE = "bubblewrap", "landlock", "none"

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/nix/store", "/proc", "/sys", "/dev")
_WRITABLE = ("/dev/null",)
_OF_INTERPRETER = ("bin", "include", "lib", "lib64", "share", "pyvenv.cfg")
_PACKAGE = Path(__file__).resolve().parents[1]
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Sandbox:
    """`program` is bubblewrap's; `common` is allowed to every action."""

    kind: str
    program: str
    common: Allowed

    @staticmethod
    def open(workspace: Path, memory: Path) -> Sandbox:
        """What works on this machine; bubblewrap is tried once per boot, and the answer kept in `memory`."""
        program = shutil.which("bwrap") or ""
        if program and _bubblewrap_works(program, memory):
            kind = BUBBLEWRAP
        else:
            kind = LANDLOCK if landlock.works() else NONE
        return Sandbox(kind, program, _common(workspace))

    @property
    def name(self) -> str:
        """For the summary."""
        partial = self.kind == BUBBLEWRAP and not landlock.works()
        return f"{self.kind} (not for tools in the worker)" if partial else self.kind

    def confine(self, command: Command, action: Action, writable: Iterable[str]) -> Command:
        """The same command, kept to its places."""
        if self.kind == NONE:
            return command
        allowed = Allowed(
            read=(
                *self.common.read,
                *_each(path for tool in action.tools for path in (tool.path, *tool.reads)),
            ),
            write=(
                *self.common.write,
                *_each(writable),
                *_each(p for tool in action.tools for p in tool.writes),
            ),
            listed=self.common.listed,
        )
        wrapper = _bubblewrap(self.program, allowed, command.folder) if self.kind == BUBBLEWRAP else ()
        return replace(command, wrapper=wrapper, allowed=allowed if landlock.works() else None)


def _common(workspace: Path) -> Allowed:
    prefixes = dict.fromkeys((sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix))
    interpreter = [os.path.join(prefix, part) for prefix in prefixes for part in _OF_INTERPRETER]
    libraries = [path for path in sys.path if os.path.isabs(path) and _are_apart(path, str(workspace))]
    read = (*_SYSTEM, *interpreter, *libraries, str(_PACKAGE))
    return Allowed(read=tuple(_each(read)), write=_WRITABLE, listed=(str(_PACKAGE.parent),))


def _are_apart(path: str, workspace: str) -> bool:
    """Whether neither lies in the other: a library beside a workspace's sources would make all of them
    readable.
    """
    return os.path.commonpath((path, workspace)) not in (path, workspace)


def _each(paths: Iterable[str]) -> Iterator[str]:
    """Those that are there, each once."""
    return (path for path in dict.fromkeys(paths) if path and os.path.exists(path))


def _bubblewrap(program: str, allowed: Allowed, folder: str) -> tuple[str, ...]:
    read = [path for path in allowed.read if not _is_below(path, (*allowed.read, *allowed.write))]
    write = [path for path in allowed.write if not _is_below(path, allowed.write)]
    binds = [("--dev-bind" if path.startswith("/dev") else "--ro-bind", path) for path in read]
    binds += [("--dev-bind" if path.startswith("/dev") else "--bind", path) for path in write]
    # What lies deeper is mounted later, and so is seen.
    mounts = [word for option, path in sorted(binds, key=_depth) for word in (option, path, path)]
    return (program, "--die-with-parent", *mounts, "--chdir", folder, "--")


def _is_below(path: str, others: Iterable[str]) -> bool:
    return any(path.startswith(f"{other}/") for other in others)


def _depth(bind: tuple[str, str]) -> tuple[int, bool]:
    return bind[1].count("/"), not bind[0].startswith("--ro")


def _bubblewrap_works(program: str, memory: Path) -> bool:
    asked = [program, os.stat(program).st_mtime_ns, _BOOT.read_text().strip()]
    known = read_sealed(memory)
    if known is not None and known["asked"] == asked:
        return bool(known["works"])
    command = [program, "--die-with-parent", "--ro-bind", "/", "/", "true"]
    works = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL).returncode == 0
    with contextlib.suppress(OSError):  # asked again the next time
        memory.parent.mkdir(parents=True, exist_ok=True)
        write_sealed(memory, {"asked": asked, "works": works})
    return works
