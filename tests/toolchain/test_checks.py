"""doctor: what is right here, and the one command for what is not."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tilebuild.toolchain import checks, crates, rust
from tilebuild.toolchain.checks import Check


def by_name() -> dict[str, Check]:
    return {check.name: check for check in checks.doctor()}


def test_all_is_right_where_the_tests_run_and_it_is_quick() -> None:
    start = time.monotonic()
    found = by_name()
    assert time.monotonic() - start < 3
    for name in (
        "Python",
        "cuda-tile",
        "tileiras",
        "tileirdisasm",
        "ptxas",
        "CUDA headers",
        "C compiler",
        "libclang",
    ):
        assert found[name].ok, found[name]
        assert not found[name].fix


def test_every_failure_names_one_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "cargo"))
    monkeypatch.setattr(rust, "toolchain", rust.toolchain.__wrapped__)
    found = by_name()
    assert found["Rust"].fix == rust.INSTALL_RUST
    assert found["C compiler"].fix == rust.INSTALL_C_COMPILER
    assert found["libclang"].fix == rust.INSTALL_C_COMPILER
    assert found["crates"].fix == "tilebuild fetch"
    assert found["tileiras"].ok
    for check in found.values():
        assert check.ok or (check.fix and "\n" not in check.fix), check


def test_crates_of_other_systems_are_not_missed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CARGO_HOME", str(tmp_path))
    missing = crates.missing()
    assert "cutile-0.5.0" in missing
    assert not [name for name in missing if name.startswith("windows")]


def test_cargo_s_own_word_is_kept_when_crates_cannot_be_fetched() -> None:
    said = "    Updating index\nerror: failed to download from crates.io\n\nCaused by:\n  offline mode\n"
    problem = crates.unreachable(said)
    assert problem.fact == "crates are missing and cargo cannot fetch them: failed to download from crates.io"
    assert problem.help.splitlines()[0] == "tilebuild fetch"
