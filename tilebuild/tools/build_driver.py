"""Builds the Rust program that compiles ports, once per (sources, lock file, Rust, CUDA headers).

    build_driver --out driver.json

The program itself lies in the user's cache, where the tool `driver` points: it holds paths of this machine
and is no output. What is written names its digest. Progress goes to standard error, one line per compiled
crate: `compiling 57/113 bindgen`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from tilebuild import faults
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError
from tilebuild.tools import protocol
from tilebuild.tools.cargo import Cargo

_PROGRAM = "tilebuild-driver"
_TREE_OPTIONS = ("--edges", "normal,build", "--prefix", "none", "--format", "{p}")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="build_driver")
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args(argv)
    cargo = Cargo.read(Path(protocol.tool_path("cargo")))
    ensure(cargo)
    Path(arguments.out).write_text(json.dumps({"driver": cargo.digest}) + "\n")
    return 0


def ensure(cargo: Cargo) -> Path:
    """The driver's path, built if it is not there. Raises DiagnosticError with cargo's own words when it
    fails."""
    if cargo.driver.is_file():
        return cargo.driver
    with cargo.locked():
        if not cargo.driver.is_file():  # another process may have built it while this one waited
            _build(cargo)
    return cargo.driver


def _build(cargo: Cargo) -> None:
    total = _count_packages(cargo)
    seen: set[str] = set()
    arguments = ["build", "--release", "--locked", "--offline", "--message-format=json"]
    process = cargo.start(arguments, cargo.sources)
    assert process.stdout is not None
    errors = _Collected(process.stderr)
    problems = []
    for message in _messages(process.stdout):
        if _finishes_package(message) and message["package_id"] not in seen:
            seen.add(message["package_id"])
            print(f"compiling {len(seen)}/{total} {message['target']['name']}", file=sys.stderr, flush=True)
        elif message["reason"] == "compiler-message" and message["message"]["level"] == "error":
            problems.append(message["message"]["rendered"])
    if process.wait() != 0:
        if fault := faults.said_in(errors.text(), "cargo"):
            raise fault
        raise DiagnosticError(_failure("\n".join(problems) or errors.text()))
    _install(cargo.target / "release" / _PROGRAM, cargo.driver)


def _count_packages(cargo: Cargo) -> int:
    """How many packages there are to compile. The first cargo of a build: fetches what is missing, if it
    may."""
    arguments = [
        "tree",
        "--locked",
        "--offline",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]
    process = cargo.start(arguments, cargo.sources)
    output, errors = process.communicate()
    if process.returncode != 0:
        _fetch(cargo, errors)
        return _count_packages(cargo)
    return len({line.removesuffix(" (*)") for line in output.splitlines()})


def _fetch(cargo: Cargo, reason: str) -> None:
    print("fetching crates", file=sys.stderr, flush=True)
    process = cargo.start(["fetch", "--locked"], cargo.sources, cargo.network)
    _, errors = process.communicate()
    if process.returncode != 0:
        lines = [line.strip() for line in (errors or reason).splitlines() if line.strip()] or ["no message"]
        said = next((line.removeprefix("error: ") for line in lines if line.startswith("error")), lines[-1])
        fact = f"crates are missing and cargo cannot fetch them: {said}"
        raise DiagnosticError(Diagnostic(fact, Blame.TOOLCHAIN, help="tilebuild fetch"))


def _messages(stream: IO[str]) -> Iterator[dict[str, Any]]:
    for line in stream:
        if line.startswith("{"):
            yield json.loads(line)


def _finishes_package(message: dict[str, Any]) -> bool:
    return bool(message["reason"] == "compiler-artifact" and message["target"]["kind"] != ["custom-build"])


class _Collected:
    """Reads a stream in a thread of its own, so that the other pipe never fills up."""

    def __init__(self, stream: IO[str] | None) -> None:
        assert stream is not None
        self._lines: list[str] = []
        self._thread = threading.Thread(target=self._lines.extend, args=(stream,))
        self._thread.start()

    def text(self) -> str:
        self._thread.join()
        return "".join(self._lines)


def _failure(text: str) -> Diagnostic:
    lines = text.strip().splitlines() or ["no message"]
    first = next((line for line in lines if line.startswith("error")), lines[0])
    return Diagnostic(
        f"the Rust driver does not build: {first}",
        Blame.TOOLCHAIN,
        help="\n".join(["`tilebuild doctor` says what is missing; cargo's last words:", *lines[-20:]]),
    )


def _install(built: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_name(f"{place.name}.{os.getpid()}")
    shutil.copy2(built, fresh)
    os.replace(fresh, place)
