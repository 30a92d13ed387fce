"""Discovery and digests of tools."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tilebuild import toolchain
from tilebuild.diagnostics import Blame, DiagnosticError
from tilebuild.toolchain import python_tools, rust, wheels
from tilebuild.toolchain.memory import Memory


@pytest.mark.parametrize("name", ["tileiras", "tileirdisasm", "ptxas"])
def test_binaries_come_from_the_installed_wheels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    found = wheels.binary(name)
    assert Path(found.path).is_file()
    assert "nvidia/cu13/bin" in found.path
    assert len(found.digest) == 64


def test_an_unknown_tool_is_a_key_error() -> None:
    for name in ("tileira", "../evil", "__main__", "protocol.run"):
        with pytest.raises(KeyError):
            toolchain.tool(name)


def test_a_missing_distribution_names_the_command_that_installs_it() -> None:
    with pytest.raises(DiagnosticError) as caught:
        wheels.locate("no-such-distribution", "x", wheels.install_command("no-such-distribution"))
    (problem,) = caught.value.diagnostics
    assert problem.blame is Blame.TOOLCHAIN
    assert problem.help.endswith("-m pip install 'no-such-distribution'")


def test_a_missing_file_of_a_distribution_asks_for_a_repair() -> None:
    with pytest.raises(DiagnosticError) as caught:
        wheels.locate("nvidia-cuda-tileiras", "nvidia/cu13/bin/absent")
    assert "--force-reinstall" in caught.value.diagnostics[0].help


def test_missing_rust_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(DiagnosticError) as caught:
        rust.toolchain.__wrapped__()
    assert caught.value.diagnostics[0].help == rust.INSTALL_RUST


def test_old_rust_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "rustc"
    program.write_text("#!/bin/sh\necho 'release: 1.75.0'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(DiagnosticError) as caught:
        rust.toolchain.__wrapped__()
    assert "Rust 1.75 is too old" in caught.value.diagnostics[0].fact
    assert caught.value.diagnostics[0].help == "rustup update stable"


def test_digests_hold_no_path_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "driver"
    shutil.copytree(rust.SOURCES, copy, ignore=shutil.ignore_patterns("target"))
    before = rust._digest.__wrapped__()
    monkeypatch.setattr(rust, "SOURCES", copy)
    rust._dependencies_digest.cache_clear()
    assert rust._digest.__wrapped__() == before
    (copy / "src" / "main.rs").write_text("fn main() {}\n")
    assert rust._digest.__wrapped__() != before
    rust._dependencies_digest.cache_clear()


def test_build_scripts_see_the_same_paths_from_every_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEBUILD_CARGO_TARGET", str(tmp_path))
    monkeypatch.setattr(rust, "_toolkit_folder", rust._toolkit_folder.__wrapped__)
    environment = rust.cargo_environment()
    toolkit = Path(environment["CUDA_TOOLKIT_PATH"])
    for path in (toolkit, Path(environment["LIBCLANG_PATH"])):
        assert path.is_relative_to(tmp_path)
    assert (toolkit / "include" / "cuda.h").is_file()
    assert (toolkit / "include" / "curand.h").is_file()
    assert Path(environment["LIBCLANG_PATH"], "libclang.so").is_file()
    (toolkit / "include").unlink()
    (toolkit / "include").symlink_to("/nonexistent")  # the environment that it pointed into is gone
    assert rust.cargo_environment() == environment
    assert (toolkit / "include" / "cuda.h").is_file()


# Python tools


def closure(name: str) -> set[str]:
    return python_tools._closure(f"tilebuild.tools.{name}")[0]


def test_a_python_tool_is_all_the_sources_that_it_imports() -> None:
    assert "tilebuild.tools.frontend.stand_ins" in closure("python_ir")
    assert "tilebuild.tools.frontend" in closure("python_ir")
    assert "tilebuild.signature" in closure("python_ir")
    assert not [name for name in closure("python_ir") if name.startswith("tilebuild.translator")]
    assert not [name for name in closure("rust_ir") if name.startswith("tilebuild.tools.frontend")]


def test_versions_of_foreign_distributions_count() -> None:
    assert python_tools._closure("tilebuild.tools.python_ir")[1] == {"cuda"}
    assert python_tools._version("cuda") == "1.7.0"


def test_an_edit_changes_the_digest_of_its_tools_only(monkeypatch: pytest.MonkeyPatch) -> None:
    edited = Path(python_tools.__file__).resolve().parents[1] / "tools" / "line_map.py"
    before = {
        name: python_tools.digest.__wrapped__(f"tilebuild.tools.{name}") for name in ("rust_ir", "python_ir")
    }
    real = Memory.digest
    monkeypatch.setattr(Memory, "digest", lambda self, path: "other" if path == edited else real(self, path))
    assert python_tools.digest.__wrapped__("tilebuild.tools.rust_ir") != before["rust_ir"]
    assert python_tools.digest.__wrapped__("tilebuild.tools.python_ir") == before["python_ir"]


# Memory


def test_a_digest_is_remembered_until_the_file_changes(tmp_path: Path) -> None:
    file, store = tmp_path / "file", tmp_path / "memory.json"
    file.write_text("one")
    first = Memory(store)
    digest = first.digest(file)
    first.remember(file, ["facts"])
    first.save()

    second = Memory(store)
    assert second.facts(file) == ["facts"]
    assert second.digest(file) == digest
    file.write_text("other")
    assert second.facts(file) is None
    assert second.digest(file) != digest


def test_a_torn_memory_is_forgotten(tmp_path: Path) -> None:
    store = tmp_path / "memory.json"
    store.write_text('{"/x": [')
    assert Memory(store).facts(Path(__file__)) is None
