"""Brings the crates that the Rust build needs, so that builds are offline. Knows the lock file, no action."""

from __future__ import annotations

import os
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError
from tilebuild.toolchain import rust

#: Crates of other systems stand in the lock file but are never needed here.
_FOREIGN = ("windows", "winapi", "wasm", "js-sys", "redox", "r-efi", "wit-", "wasi")


def fetch(report: Callable[[str], None] = print) -> None:
    """Downloads what is missing. Raises DiagnosticError when that is impossible."""
    absent = missing()
    if not absent:
        report("all crates are here")
        return
    report(f"fetching {len(absent)} crates")
    found = rust.toolchain()
    done = subprocess.run(
        [found.cargo, "fetch", "--locked", "--manifest-path", rust.SOURCES / "Cargo.toml"],
        env={**os.environ, **rust.cargo_environment()},
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise DiagnosticError(unreachable(done.stderr))
    report(f"fetched {len(absent)} crates")


def unreachable(stderr: str) -> Diagnostic:
    """Crates are missing and cargo could not bring them."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()] or ["no message"]
    said = next((line.removeprefix("error: ") for line in lines if line.startswith("error")), lines[-1])
    return Diagnostic(
        f"crates are missing and cargo cannot fetch them: {said}",
        Blame.TOOLCHAIN,
        help="tilebuild fetch\non a machine with access to crates.io; builds are offline afterwards",
    )


def missing() -> list[str]:
    """`name-version` of the crates in the lock file that are not in cargo's cache."""
    packages = tomllib.loads(rust.lock_file().read_text())["package"]
    needed = {f"{p['name']}-{p['version']}" for p in packages if "source" in p}
    here = _crates_in(rust.cargo_home() / "registry" / "cache")
    return sorted(name for name in needed - here if not name.startswith(_FOREIGN))


def _crates_in(cache: Path) -> set[str]:
    return {path.name.removesuffix(".crate") for path in cache.glob("*/*.crate")}
