"""Finds what installed wheels bring: assembler, disassembler, CUDA headers, libclang. Looks at the running
interpreter's distributions and never at PATH, so that the pinned versions are the ones used."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

from tilebuild.action import Tool
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError
from tilebuild.toolchain.memory import memory

_TREE = "nvidia/cu13"
#: Which distribution brings a binary, and which others it calls or loads.
_BINARIES = {
    "tileiras": ("nvidia-cuda-tileiras", ("nvidia-cuda-tileiras", "nvidia-cuda-nvcc", "nvidia-nvvm")),
    "tileirdisasm": ("nvidia-cuda-tileiras", ("nvidia-cuda-tileiras",)),
    "ptxas": ("nvidia-cuda-nvcc", ("nvidia-cuda-nvcc",)),
}
_HEADERS = ("nvidia-cuda-runtime", "nvidia-cuda-crt", "nvidia-curand")


def install_command(requirement: str) -> str:
    return f"{sys.executable} -m pip install {requirement!r}"


#: What installs all of it.
INSTALL = install_command("cuda-tile[tileiras]==1.7.0")


def binary(name: str) -> Tool:
    distribution, parts = _BINARIES[name]
    path = locate(distribution, f"{_TREE}/bin/{name}")
    state = sha256(f"{name} {memory.digest(path)}\n".encode())
    for part in parts:
        state.update(contents(part).encode())
    return Tool(name, state.hexdigest(), path=str(path), reads=(str(path.parents[1]),))


def shell() -> Tool:
    path = shutil.which("sh")
    if path is None:
        raise DiagnosticError(Diagnostic("there is no `sh` on the PATH", Blame.TOOLCHAIN))
    return Tool("sh", memory.digest(Path(path)), path=path)


def locate(distribution: str, path: str, install: str = INSTALL) -> Path:
    """A file of an installed distribution. Raises DiagnosticError with the command that installs it."""
    try:
        found = Path(str(importlib.metadata.distribution(distribution).locate_file(path)))
    except importlib.metadata.PackageNotFoundError:
        fact = f"the Python distribution {distribution} is not installed"
        raise DiagnosticError(Diagnostic(fact, Blame.TOOLCHAIN, help=install)) from None
    if not found.exists():
        fact = f"{distribution} is installed, but its file {path} is missing"
        repair = install.replace("pip install", "pip install --force-reinstall --no-deps")
        raise DiagnosticError(Diagnostic(fact, Blame.TOOLCHAIN, help=repair))
    return found


def include_folder() -> Path:
    """CUDA's headers, those of cuRAND among them."""
    locate("nvidia-curand", f"{_TREE}/include/curand.h", install_command("nvidia-curand"))
    return locate("nvidia-cuda-runtime", f"{_TREE}/include/cuda.h").parent


def binary_folder() -> Path:
    return locate("nvidia-cuda-tileiras", f"{_TREE}/bin/tileiras").parent


def headers_digest() -> str:
    include_folder()
    return sha256("".join(contents(name) for name in _HEADERS).encode()).hexdigest()


def libclang_folder() -> Path:
    return locate("libclang", "clang/native/libclang.so", install_command("libclang>=18")).parent


@cache
def contents(distribution: str) -> str:
    """What a distribution's record says of its own files; leaves out what the installer wrote."""
    try:
        record = importlib.metadata.distribution(distribution).read_text("RECORD") or ""
    except importlib.metadata.PackageNotFoundError:
        return f"{distribution} absent\n"
    return "".join(f"{line}\n" for line in sorted(record.splitlines()) if line.startswith("nvidia/"))
