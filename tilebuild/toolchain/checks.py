"""Says what is installed and what is missing, with the one command that fixes it. Changes nothing."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tilebuild.diagnostics import DiagnosticError
from tilebuild.toolchain import crates, rust, wheels
from tilebuild.toolchain.memory import cache_folder

_CUDA_TILE = "1.7.0"
_TILEIRAS = "13.4.92"


@dataclass(frozen=True)
class Check:
    """One thing that must be right. `fix` is the one command that makes it so; empty when `ok`."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


class _Wrong(Exception):
    def __init__(self, detail: str, fix: str) -> None:
        super().__init__(detail)
        self.detail, self.fix = detail, fix


def doctor() -> list[Check]:
    """All checks, in the order in which a newcomer would repair them."""
    with ThreadPoolExecutor(max_workers=8) as pool:  # nearly all of them wait for a child process
        return list(pool.map(_checked, _CHECKS, _CHECKS.values()))


def _checked(name: str, check: Callable[[], str]) -> Check:
    try:
        return Check(name, True, check())
    except _Wrong as wrong:
        return Check(name, False, wrong.detail, wrong.fix)
    except DiagnosticError as error:
        first = error.diagnostics[0]
        return Check(name, False, first.fact, first.help.partition("\n")[0])


def _python() -> str:
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        raise _Wrong(
            f"Python {sys.version.split()[0]}; 3.11 to 3.13 are supported", "python3.12 -m venv .venv"
        )
    return f"Python {sys.version.split()[0]}"


def _cuda_tile() -> str:
    return f"cuda-tile {_version('cuda-tile', _CUDA_TILE)}"


def _tileiras() -> str:
    path = wheels.binary_folder() / "tileiras"
    _run([path, "--version"], wheels.INSTALL)
    return f"tileiras {_version('nvidia-cuda-tileiras', _TILEIRAS)}"


def _tileirdisasm() -> str:
    _run([wheels.binary_folder() / "tileirdisasm", "--help"], wheels.INSTALL)
    return "beside tileiras"


def _ptxas() -> str:
    path = wheels.locate("nvidia-cuda-nvcc", "nvidia/cu13/bin/ptxas")
    return _run([path, "--version"], wheels.INSTALL).strip().splitlines()[-1]


def _headers() -> str:
    return str(wheels.include_folder())


def _libclang() -> str:
    """libclang must find `stddef.h`, as bindgen will ask of it for CUDA's headers."""
    library = wheels.libclang_folder() / "libclang.so"
    headers = rust.resource_headers()
    script = (
        "import sys; from clang import cindex; cindex.Config.set_library_file(sys.argv[1]);"
        "unit = cindex.Index.create().parse('t.h', args=['-I' + sys.argv[2]],"
        " unsaved_files=[('t.h', '#include <stddef.h>\\n#include <stdint.h>\\nsize_t n; uint64_t m;\\n')]);"
        "sys.exit('\\n'.join(str(d) for d in unit.diagnostics) or 0)"
    )
    _run([sys.executable, "-c", script, library, headers], rust.INSTALL_C_COMPILER)
    return f"libclang {importlib.metadata.version('libclang')} with the headers of {headers}"


def _c_compiler() -> str:
    compiler = rust.c_compiler()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "t.c"
        program.write_text("#include <stdlib.h>\nint main(void) { return EXIT_SUCCESS; }\n")
        _run([compiler, program, "-o", Path(folder) / "t"], rust.INSTALL_C_COMPILER)
    return str(compiler)


def _rust() -> str:
    return rust.toolchain().description.splitlines()[0]


def _rust_components() -> str:
    found = rust.toolchain()
    _run([found.cargo, "--version"], rust.INSTALL_RUST)
    _run([found.clippy_driver, "--version"], rust.INSTALL_COMPONENTS)
    _run([found.rustfmt, "--version"], rust.INSTALL_COMPONENTS)
    return "cargo, clippy, rustfmt"


def _crates() -> str:
    absent = crates.missing()
    if absent:
        raise _Wrong(f"{len(absent)} crates are not fetched yet, {absent[0]} for one", "tilebuild fetch")
    return f"all in {rust.cargo_home()}"


def _cache() -> str:
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except OSError as error:
        raise _Wrong(
            f"{folder} cannot be written: {error.strerror}", f"export XDG_CACHE_HOME={os.getcwd()}/.cache"
        ) from error


#: What is checked, by the name that is shown.
_CHECKS: dict[str, Callable[[], str]] = {
    "Python": _python,
    "cuda-tile": _cuda_tile,
    "tileiras": _tileiras,
    "tileirdisasm": _tileirdisasm,
    "ptxas": _ptxas,
    "CUDA headers": _headers,
    "C compiler": _c_compiler,
    "libclang": _libclang,
    "Rust": _rust,
    "Rust components": _rust_components,
    "crates": _crates,
    "cache": _cache,
}


def _version(distribution: str, wanted: str) -> str:
    try:
        found = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        raise _Wrong(f"{distribution} is not installed", wheels.INSTALL) from None
    if found != wanted:
        raise _Wrong(f"{distribution} {found} is installed, {wanted} is needed", wheels.INSTALL)
    return found


def _run(command: list[str | Path], fix: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _Wrong(f"{command[0]} does not run: {error}", fix) from error
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise _Wrong(f"{Path(command[0]).name} fails: {lines[0]}", fix)
    return done.stdout
