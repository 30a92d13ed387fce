"""The warm worker: a process that has the Python tools loaded and forks once per action. Knows no single
tool.

Requests arrive on a socket of packets, each with one descriptor to which the exit status is written:

    {"number": …, "module": …, "argv": […], "folder": …, "environment": {…}, "stdout": …, "stderr": …,
     "allowed": {…} | null}
    {"kill": number}

A module is loaded before the first fork that needs it and warmed if it has a function `warm_up`. Each
action has a process of its own, so it can neither leak into the next one nor be told from a fresh process.
Forking is safe only while there is one thread; a module that starts threads makes the worker refuse, and
the engine then uses fresh processes.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import tempfile
import traceback
from typing import Any

from tilebuild import landlock
from tilebuild.tools import protocol

REFUSED = b"refused"
_PACKET = 1 << 18
_PR_SET_PDEATHSIG = 1


class Zygote:
    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ)
        self._children: dict[int, tuple[int, int, int]] = {}  # pidfd -> (pid, reply, number of the request)
        self._loaded: set[str] = set()

    def run(self) -> int:
        """Serves until the engine closes its end; then ends all that still runs."""
        while True:
            for key, _ in self._selector.select():
                if key.fd != self._channel.fileno():
                    self._reap(key.fd)
                elif not self._receive():
                    for pid, _, _ in self._children.values():
                        _kill_group(pid)
                    return 0

    def _receive(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self._channel, _PACKET, 1)
        if not data:
            return False
        request = json.loads(data)
        if "kill" in request:
            for pid, _, number in self._children.values():
                if number == request["kill"]:
                    _kill_group(pid)
            return True
        self._start(request, descriptors[0])
        return True

    def _start(self, request: dict[str, Any], reply: int) -> None:
        self._load(request["module"])
        if len(os.listdir("/proc/self/task")) != 1:
            os.write(reply, REFUSED)
            os.close(reply)
            return
        worker = os.getpid()
        pid = os.fork()
        if pid == 0:
            _die_with(worker)
            _become(request)  # never returns
        pidfd = os.pidfd_open(pid)
        self._children[pidfd] = (pid, reply, request["number"])
        self._selector.register(pidfd, selectors.EVENT_READ)

    def _load(self, module: str) -> None:
        if module in self._loaded:
            return
        self._loaded.add(module)
        try:
            loaded = importlib.import_module(module)
            if hasattr(loaded, "warm_up"):
                loaded.warm_up()
        except Exception:
            return  # the child meets the same error and reports it as a fresh process would
        gc.collect()
        gc.freeze()

    def _reap(self, pidfd: int) -> None:
        pid, reply, _ = self._children.pop(pidfd)
        _kill_group(pid)  # what the tool left running; not reaped yet, so the number is still its own
        _, status = os.waitpid(pid, 0)
        self._selector.unregister(pidfd)
        os.close(pidfd)
        with contextlib.suppress(BrokenPipeError):  # the engine does not wait for this one any more
            os.write(reply, str(os.waitstatus_to_exitcode(status)).encode())
        os.close(reply)


def serve(descriptor: int) -> int:
    return Zygote(socket.socket(fileno=descriptor)).run()


def _die_with(worker: int) -> None:
    """A fork that outlives its worker would write into the folder in which a fresh process works instead."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != worker:
        os._exit(1)


def _become(request: dict[str, Any]) -> None:
    """Turns this forked process into the one that a fresh start of the tool would be, and ends it."""
    status = 1
    try:
        os.setsid()
        for target, path, flags in (
            (0, os.devnull, os.O_RDONLY),
            (1, request["stdout"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            (2, request["stderr"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        ):
            descriptor = os.open(path, flags, 0o644)
            os.dup2(descriptor, target)
            os.close(descriptor)
        os.closerange(3, 1 << 16)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.clear()
        os.environ.update(request["environment"])
        tempfile.tempdir = None  # found anew in this environment
        os.chdir(request["folder"])
        if request["allowed"] is not None:
            landlock.confine(landlock.Allowed(**request["allowed"]))
        sys.argv = [request["module"], *request["argv"]]
        module = importlib.import_module(request["module"])
        status = protocol.run(module.main, request["argv"])
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # ended already
        os.killpg(leader, signal.SIGKILL)
