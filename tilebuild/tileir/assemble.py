"""Byte code to a cubin by the vendor's assembler, repeatably. Knows no operation.

`tileiras` orders some of its work by addresses, so for some devices its output depends on where the system
loads it. A fixed address layout makes it a function of its input. Where the system refuses that, many runs
stand in for it."""

from __future__ import annotations

import ctypes
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tilebuild import faults

#: Runs that stand in for a fixed address layout.
RUNS = 16
#: Devices for which two runs of the assembler on one input were seen to differ.
LAYOUT_DEPENDENT = frozenset({"sm_100", "sm_103", "sm_107", "sm_110"})

_ADDR_NO_RANDOMIZE = 0x0040000
_QUERY = 0xFFFFFFFF
_ADDRESS = re.compile(r"0x[0-9a-f]{6,16}\b")


@dataclass(frozen=True)
class Refusal:
    """The assembler's answer to a kernel it does not take; the text holds no path and no address."""

    message: str


class AssemblerCrash(Exception):
    """The assembler ended by a signal or without a word: not a property of the kernel, so never a result."""

    def __init__(self, status: int, output: str) -> None:
        self.status = status
        self.output = output
        super().__init__(f"signal {-status}" if status < 0 else f"exit status {status}")


class LayoutRefused(Exception):
    """The system does not let a process fix the address layout of its children."""


def assemble(
    byte_code: bytes, tileiras: str, architecture: str, *, fixed_layout: bool, environment: Mapping[str, str]
) -> bytes | Refusal:
    """One answer. Raises `AssemblerCrash`, `LayoutRefused` if `fixed_layout` cannot be had, and OSError for
    what the machine keeps it from.

    The assembler runs programs of its own, and says the same words whether one of them refuses the kernel or
    is killed. So a refusal counts when a second run gives it too; a cubin is an answer at once.
    """

    def once() -> bytes | Refusal:
        return _run(byte_code, tileiras, architecture, fixed_layout=fixed_layout, environment=environment)

    first = once()
    if isinstance(first, bytes):
        return first
    second = once()
    if isinstance(second, Refusal) and second != first:
        raise AssemblerCrash(1, f"{first.message}\nand, asked again:\n{second.message}")
    return second


def _run(
    byte_code: bytes, tileiras: str, architecture: str, *, fixed_layout: bool, environment: Mapping[str, str]
) -> bytes | Refusal:
    with tempfile.TemporaryDirectory(prefix="tilebuild-") as folder:
        source, cubin = Path(folder, "kernel.tilebc"), Path(folder, "kernel.cubin")
        source.write_bytes(byte_code)
        command = [tileiras, "--gpu-name", architecture, "--opt-level", "3", "-o", str(cubin), str(source)]
        with _fixed_layout() if fixed_layout else _free_layout():
            done = subprocess.run(
                command,
                cwd=folder,
                env={**environment, "TMPDIR": folder},
                capture_output=True,
                text=True,
                errors="replace",
            )
        if done.returncode == 0 and cubin.exists():
            return cubin.read_bytes()
        output = _stable(done.stderr or done.stdout, folder)
        if fault := faults.said_in(output, "tileiras"):
            raise fault
        if done.returncode <= 0 or not output:
            raise AssemblerCrash(done.returncode, output)
        return Refusal(output)


def most_frequent(outcomes: list[bytes | Refusal]) -> bytes | Refusal:
    """The outcome of most runs; of equally frequent ones that with the smallest digest."""
    counts = Counter(outcomes)
    return min(counts, key=lambda outcome: (-counts[outcome], _digest(outcome)))


def _digest(outcome: bytes | Refusal) -> str:
    return sha256(outcome if isinstance(outcome, bytes) else outcome.message.encode()).hexdigest()


@contextmanager
def _fixed_layout() -> Iterator[None]:
    """Children started inside get the same addresses in every run; the calling process keeps its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = libc.personality(ctypes.c_ulong(_QUERY))
    if before == -1 or libc.personality(ctypes.c_ulong(before | _ADDR_NO_RANDOMIZE)) == -1:
        raise LayoutRefused
    try:
        yield
    finally:
        libc.personality(ctypes.c_ulong(before))


@contextmanager
def _free_layout() -> Iterator[None]:
    yield


def _stable(output: str, folder: str) -> str:
    """The tool's words without the parts that change from run to run."""
    return _ADDRESS.sub("0x…", output.replace(f"{folder}/", "")).strip()
