"""Finds the Rust toolchain and says how cargo is run: one environment, one target folder, one set of compiled
dependencies for the driver and for every checked port.

Machine paths stay out of keys: the driver is known by its sources, its lock file, the compiler's own
description of itself and the CUDA headers.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from tilebuild.action import Tool
from tilebuild.cache.sealed import replace_file
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError
from tilebuild.toolchain import wheels
from tilebuild.toolchain.memory import cache_folder, memory

MINIMUM = (1, 89)
INSTALL_RUST = "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y"
INSTALL_COMPONENTS = "rustup component add clippy rustfmt"
INSTALL_C_COMPILER = "sudo apt-get install -y gcc libc6-dev"
SOURCES = Path(__file__).resolve().parents[1] / "driver"
DRIVER = "tilebuild-driver"
_LIBCLANG = "libclang"
#: What a download may need from the caller's environment.
_NETWORK = (
    *("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "ALL_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "CARGO_HTTP_CAINFO", "CARGO_HTTP_PROXY"),
)


@dataclass(frozen=True)
class Rust:
    """One Rust toolchain: its programs, called directly and not through rustup."""

    rustc: Path
    cargo: Path
    clippy_driver: Path
    rustfmt: Path
    version: tuple[int, int]
    description: str  # `rustc -vV`
    root: Path


def driver() -> Tool:
    """The path holds the program once BuildDriver has run, see `tilebuild/tools/build_driver.py`."""
    path = _folder() / DRIVER
    return Tool("driver", _digest(), path=str(path), reads=_read_by_cargo(), writes=_written_by_cargo())


def cargo() -> Tool:
    """The path is a JSON file: programs, environment and target folder, see `tilebuild/tools/cargo.py`."""
    path = str(_cargo_file())
    return Tool("cargo", _dependencies_digest(), path, reads=_read_by_cargo(), writes=_written_by_cargo())


def rustfmt() -> Tool:
    found = toolchain()
    digest = sha256(f"rustfmt {found.description}".encode()).hexdigest()
    return Tool("rustfmt", digest, path=str(found.rustfmt), reads=(str(found.root),))


@cache
def toolchain() -> Rust:
    """The toolchain that `rustc` on the PATH stands for. Raises DiagnosticError when it is absent, old or
    incomplete."""
    proxy = shutil.which("rustc") or shutil.which("rustc", path=os.path.expanduser("~/.cargo/bin"))
    if proxy is None:
        raise DiagnosticError(
            Diagnostic(
                "Rust is not installed: there is no `rustc` on the PATH", Blame.TOOLCHAIN, help=INSTALL_RUST
            )
        )
    description = _ask(proxy, "-vV")
    root = Path(_ask(proxy, "--print", "sysroot").strip())
    folder = root / "bin"
    found = re.search(r"^release: (\d+)\.(\d+)", description, re.MULTILINE)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    if version < MINIMUM:
        fact = f"Rust {version[0]}.{version[1]} is too old; {MINIMUM[0]}.{MINIMUM[1]} or newer is needed"
        raise DiagnosticError(Diagnostic(fact, Blame.TOOLCHAIN, help="rustup update stable"))
    return Rust(
        folder / "rustc",
        _program("cargo", folder, INSTALL_RUST),
        _program("clippy-driver", folder, INSTALL_COMPONENTS),
        _program("rustfmt", folder, INSTALL_COMPONENTS),
        version,
        description,
        root,
    )


def c_compiler() -> Path:
    """The C compiler that links Rust programs and whose headers libclang borrows."""
    for name in ("cc", "gcc", "clang"):
        if path := shutil.which(name):
            return Path(path)
    raise DiagnosticError(
        Diagnostic("there is no C compiler on the PATH", Blame.TOOLCHAIN, help=INSTALL_C_COMPILER)
    )


def resource_headers() -> Path:
    """The folder with `stddef.h`: libclang's wheel brings none of its own."""
    compiler = c_compiler()
    for question in (["-print-file-name=include"], ["-print-resource-dir"]):
        answer = subprocess.run([compiler, *question], capture_output=True, text=True).stdout.strip()
        for folder in (Path(answer), Path(answer) / "include"):
            if (folder / "stddef.h").is_file():
                return folder.resolve()
    fact = f"{compiler} does not say where its own headers (stddef.h) are"
    raise DiagnosticError(Diagnostic(fact, Blame.TOOLCHAIN, help=INSTALL_C_COMPILER))


def target_folder() -> Path:
    """Cargo's own cache: one per compiler, lock file and profile."""
    if chosen := os.environ.get("TILEBUILD_CARGO_TARGET"):
        return Path(chosen).absolute()
    return cache_folder() / "cargo" / _dependencies_digest()[:16]


def cargo_home() -> Path:
    return Path(os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo")).absolute()


def cargo_environment() -> dict[str, str]:
    """All that cargo and what it runs may see. Every value is stable on one machine: another one rebuilds
    dependencies."""
    compiler = c_compiler()
    return {
        "PATH": os.pathsep.join(dict.fromkeys([str(compiler.parent), "/usr/local/bin", "/usr/bin", "/bin"])),
        "HOME": os.path.expanduser("~"),
        "CARGO_HOME": str(cargo_home()),
        "CARGO_TARGET_DIR": str(target_folder()),
        "RUSTC": str(toolchain().rustc),
        "CUDA_TOOLKIT_PATH": str(_toolkit_folder()),
        "LIBCLANG_PATH": str(_toolkit_folder() / _LIBCLANG),
        "BINDGEN_EXTRA_CLANG_ARGS": f"-I{resource_headers()}",
    }


def lock_file() -> Path:
    return SOURCES / "Cargo.lock"


def _folder() -> Path:
    """The driver's folder in the user's cache."""
    _cargo_file()
    return cache_folder() / "driver" / _digest()[:16]


def _read_by_cargo() -> tuple[str, ...]:
    """The toolchain, the registry, the headers; and what name servers a download is to ask."""
    headers = (wheels.include_folder(), wheels.binary_folder(), wheels.libclang_folder(), resource_headers())
    folders = (toolchain().root, cargo_home(), SOURCES, c_compiler(), *headers)
    return (*map(str, folders), "/run/systemd/resolve")


def _written_by_cargo() -> tuple[str, ...]:
    """What is compiled, the driver, and what cargo keeps of the registry."""
    home = cargo_home()
    (home / "registry").mkdir(parents=True, exist_ok=True)
    kept = [
        home / name
        for name in ("registry", "git", ".package-cache", ".package-cache-mutate", ".global-cache")
    ]
    return tuple(map(str, (target_folder(), _folder(), *kept)))


@cache
def _cargo_file() -> Path:
    """The file that says how to run cargo, beside the driver; one per way, so that two target folders do not
    meet."""
    found = toolchain()
    folder = cache_folder() / "driver" / _digest()[:16]
    description = {
        "cargo": str(found.cargo),
        "clippy_driver": str(found.clippy_driver),
        "rustfmt": str(found.rustfmt),
        "sources": str(SOURCES),
        "target": str(target_folder()),
        "driver": str(folder / DRIVER),
        "digest": _digest(),
        "environment": cargo_environment(),
        "network": {name: os.environ[name] for name in _NETWORK if name in os.environ},
    }
    text = json.dumps(description, indent=2).encode()
    file = folder / f"cargo-{sha256(text).hexdigest()[:8]}.json"
    if not file.is_file() or file.read_bytes() != text:  # it may be damaged
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(file, text)
    return file


@cache
def _toolkit_folder() -> Path:
    """What looks like a CUDA toolkit, with libclang beside it, at one place per target folder, wherever the
    wheels lie.

    Build scripts remember the paths they were given: the same wheels in another environment would rebuild
    everything.
    """
    folder = target_folder() / "toolkit" / wheels.headers_digest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    for name, target in (
        ("include", wheels.include_folder()),
        ("bin", wheels.binary_folder()),
        (_LIBCLANG, wheels.libclang_folder()),
    ):
        link = folder / name
        if not link.is_symlink() or os.readlink(link) != str(target):
            fresh = folder / f"{name}.{os.getpid()}"
            fresh.symlink_to(target)
            os.replace(fresh, link)
    return folder


@cache
def _digest() -> str:
    state = sha256(_dependencies_digest().encode())
    for path in sorted([*SOURCES.glob("*.toml"), *(SOURCES / "src").rglob("*.rs")]):
        state.update(f"{path.relative_to(SOURCES)} {memory.digest(path)}\n".encode())
    return state.hexdigest()


@cache
def _dependencies_digest() -> str:
    """Of what cargo compiles once for all: manifest and lock file, the compiler, CUDA's headers."""
    parts = (
        toolchain().description,
        memory.digest(SOURCES / "Cargo.toml"),
        memory.digest(lock_file()),
        wheels.headers_digest(),
    )
    return sha256("\n".join(parts).encode()).hexdigest()


def _ask(program: str, *arguments: str) -> str:
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        fact = f"`{program} {' '.join(arguments)}` failed: {done.stderr.strip() or done.stdout.strip()}"
        raise DiagnosticError(Diagnostic(fact, Blame.TOOLCHAIN, help="rustup default stable"))
    return done.stdout


def _program(name: str, folder: Path, install: str) -> Path:
    """A program of the toolchain; a distribution's package may put it elsewhere on the PATH."""
    beside = folder / name
    found = beside if beside.is_file() else shutil.which(name)
    if found is None:
        raise DiagnosticError(
            Diagnostic(f"the Rust toolchain has no `{name}`", Blame.TOOLCHAIN, help=install)
        )
    return Path(found)
