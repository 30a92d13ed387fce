"""Starts one command and says when it ended. Knows nothing of actions, keys or schedules.

Output goes to files, never to pipes, so nothing has to be read while a command runs. Each command leads a
process group of its own: a terminal's Ctrl-C does not reach it, and it can be killed together with what it
started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from tilebuild import landlock
from tilebuild.landlock import Allowed


@dataclass(frozen=True)
class Command:
    """A program with arguments, or a Python tool: then `module` is set and `argv` holds its arguments
    only. `wrapper` is a program that confines it, with arguments; without one, `allowed` does.
    """

    argv: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    stdout: str
    stderr: str
    module: str = ""
    wrapper: tuple[str, ...] = ()
    allowed: Allowed | None = None


class Running(Protocol):
    """A command that was started."""

    def fileno(self) -> int:
        """Becomes readable when `poll` has something to do; may be another one after each `poll`."""

    def poll(self) -> int | None:
        """After `fileno` became readable: the exit status, negative for a signal, or None if it still
        runs.
        """

    def kill(self) -> None:
        """Ends the command and all that it started."""


class Runner(Protocol):
    """A way to start commands."""

    def start(self, command: Command) -> Running: ...

    def close(self) -> None:
        """Ends what the runner itself keeps running."""


class FreshProcesses:
    """Every command is a new process."""

    def start(self, command: Command) -> Running:
        argv = list(command.argv)
        if command.module:
            argv = [sys.executable, "-P", "-m", "tilebuild.tools", command.module, *argv]
        with open(command.stdout, "wb") as stdout, open(command.stderr, "wb") as stderr:

            def start() -> subprocess.Popen[bytes]:
                return subprocess.Popen(
                    [*command.wrapper, *argv],
                    cwd=command.folder,
                    env=dict(command.environment),
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                    close_fds=False,  # descriptors of ours are all close-on-exec; this allows a fast start
                )

            confined = command.allowed if not command.wrapper else None
            return _FreshProcess(_start_confined(start, confined) if confined else start())

    def close(self) -> None:
        return None


def _start_confined(
    start: Callable[[], subprocess.Popen[bytes]], allowed: Allowed
) -> subprocess.Popen[bytes]:
    """Starts it from a thread that confines itself and ends: a child inherits that, this process does not."""
    started: list[subprocess.Popen[bytes]] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            landlock.confine(allowed)
            started.append(start())
        except BaseException as error:  # raised again where it was asked for
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    for error in failed:
        raise error
    return started[0]


class _FreshProcess:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._pidfd = os.pidfd_open(process.pid)

    def fileno(self) -> int:
        return self._pidfd

    def poll(self) -> int | None:
        # What it left running in its group; the leader is not reaped yet, so the number is still its own.
        self.kill()
        os.close(self._pidfd)
        return self._process.wait()

    def kill(self) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # ended already
                os.killpg(self._process.pid, signal.SIGKILL)
