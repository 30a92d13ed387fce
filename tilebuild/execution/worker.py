"""Runs Python tools in forks of one warm worker, everything else in fresh processes. Knows nothing of
actions.

The worker is started with the first Python tool. It is a plain process, not a fork of the engine. When it
refuses or dies, the commands it had run in fresh processes instead.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping

from tilebuild.execution.process import Command, FreshProcesses, Running

_REFUSED = b"refused"
_PATIENCE_S = 5.0


class WarmWorker:
    """`environment` is what the worker starts with; each command brings its own."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._fresh = FreshProcesses()
        self._channel: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._number = 0

    def start(self, command: Command) -> Running:
        if not command.module:
            return self._fresh.start(command)
        self._number += 1
        request = {
            "number": self._number,
            "module": command.module,
            "argv": command.argv,
            "folder": command.folder,
            "environment": dict(command.environment),
            "stdout": command.stdout,
            "stderr": command.stderr,
            "allowed": None if command.allowed is None else vars(command.allowed),
        }
        reading, writing = os.pipe2(os.O_CLOEXEC)
        try:
            channel = self._connect()
            socket.send_fds(channel, [json.dumps(request).encode()], [writing])
        except OSError:
            os.close(reading)
            self._disconnect()
            return self._fresh.start(command)
        finally:
            os.close(writing)
        return _Fork(self, channel, self._number, reading, command)

    def start_fresh(self, command: Command) -> Running:
        return self._fresh.start(command)

    def close(self) -> None:
        self._disconnect()

    def _connect(self) -> socket.socket:
        if self._channel is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "tilebuild.tools", "--serve", str(theirs.fileno())],
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            self._channel = ours
        return self._channel

    def _disconnect(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            try:
                self._process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


class _Fork:
    """One command in a fork of the worker; becomes a fresh process when the worker cannot run it."""

    def __init__(
        self, worker: WarmWorker, channel: socket.socket, number: int, reading: int, command: Command
    ) -> None:
        self._worker = worker
        self._channel = channel
        self._number = number
        self._reading = reading
        self._command = command
        self._killed = False
        self._instead: Running | None = None

    def fileno(self) -> int:
        return self._reading if self._instead is None else self._instead.fileno()

    def poll(self) -> int | None:
        if self._instead is not None:
            return self._instead.poll()
        answer = os.read(self._reading, 64)
        os.close(self._reading)
        if answer and answer != _REFUSED:
            return int(answer)
        if self._killed:
            return -signal.SIGKILL
        self._instead = self._worker.start_fresh(self._command)
        return None

    def kill(self) -> None:
        self._killed = True
        if self._instead is not None:
            self._instead.kill()
            return
        with contextlib.suppress(OSError):  # without the worker its children are gone, too
            self._channel.send(json.dumps({"kill": self._number}).encode())
