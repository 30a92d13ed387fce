"""Finding a workspace and reading its settings: command line over environment over file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tilebuild.action import Artifact
from tilebuild.diagnostics import DiagnosticError
from tilebuild.settings import Settings, load_settings, parse_size
from tilebuild.workspace import find_root, open_workspace


def settings(root: Path, text: str, overrides: Mapping[str, object], **environ: str) -> Settings:
    (root / "tilebuild.toml").write_text(text)
    return load_settings(root, overrides, environ)


def error(root: Path, text: str, **environ: str) -> str:
    with pytest.raises(DiagnosticError) as caught:
        settings(root, text, {}, **environ)
    return str(caught.value)


def test_defaults(tmp_path: Path) -> None:
    read = settings(tmp_path, "", {})
    assert read.architectures == ("sm_90", "sm_100", "sm_120")
    assert read.gates.evidence == "same-machine-code"
    assert read.cache.limit_bytes == 20 * 10**9


def test_command_line_over_environment_over_file(tmp_path: Path) -> None:
    text = 'jobs = 1\noutput = "one"\narchitectures = ["sm_80"]\n[gates]\nspeed = 0.5\nrow_floor = 0.4\n'
    read = settings(
        tmp_path,
        text,
        {"jobs": 3, "output": None},
        TILEBUILD_JOBS="2",
        TILEBUILD_GATES_SPEED="0.75",
        TILEBUILD_ARCHITECTURES="sm_90, sm_103",
        TILEBUILD_TOOL_SH="/bin/sh",
    )
    assert (read.jobs, read.output, read.gates.speed, read.gates.row_floor) == (3, "one", 0.75, 0.4)
    assert read.architectures == ("sm_90", "sm_103")


def test_unknown_settings_are_errors_with_a_suggestion(tmp_path: Path) -> None:
    assert error(tmp_path, "jobs = 1\narchitecture = []\n") == (
        "tilebuild.toml:2:1: BUILD file error: unknown setting 'architecture'\n"
        "    architecture = []\n"
        "    ^^^^^^^^^^^^\n"
        "  help: did you mean 'architectures'?"
    )
    assert "did you mean 'gates.speed'" in error(tmp_path, "[gates]\nsped = 1.0\n")
    assert "did you mean 'TILEBUILD_JOBS'" in error(tmp_path, "", TILEBUILD_JOB="1")


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ('architectures = ["90"]', "'90' is not an architecture"),
        ('architectures = ["sm_1"]', "'sm_1' is not an architecture"),
        ('architectures = ["sm_91"]', "did you mean 'sm_90'"),
        ("architectures = []", "at least 1 item"),
        ("jobs = -1", "greater than or equal to 0"),
        ('[gates]\nevidence = "same"', "setting 'gates.evidence'"),
        ('[cache]\nlimit = "a lot"', "'a lot' is not a size"),
        ("jobs = ", "tilebuild.toml:1"),
    ],
)
def test_wrong_values(tmp_path: Path, text: str, fact: str) -> None:
    assert fact in error(tmp_path, text)


def test_sizes() -> None:
    assert [parse_size(s) for s in ("5", "2 KB", "1.5GB", "3m")] == [5, 2000, 1_500_000_000, 3_000_000]


def test_the_root_is_the_nearest_ancestor(tmp_path: Path) -> None:
    (tmp_path / "tilebuild.toml").touch()
    inner = tmp_path / "a/b"
    inner.mkdir(parents=True)
    assert find_root(inner) == tmp_path.resolve()
    (tmp_path / "a/pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert find_root(inner) == tmp_path.resolve()
    (tmp_path / "a/pyproject.toml").write_text("[tool.tilebuild]\noutput = 'out'\n")
    workspace, read = open_workspace(inner, environ={})
    assert workspace.root == tmp_path.resolve() / "a"
    assert read.output == "out"
    assert workspace.folder(inner) == "b"
    assert workspace.path_of(Artifact("x/y", source=False)) == workspace.root / "out/x/y"
    assert workspace.path_of(Artifact("x/y")) == workspace.root / "x/y"
    assert workspace.path_of(Artifact("external/z", location="/lib/z")) == Path("/lib/z")


def test_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError, match="not inside a tilebuild workspace"):
        find_root(tmp_path)


def test_device_classes(tmp_path: Path) -> None:
    read = settings(tmp_path, '[gpu]\ndevices = ["NVIDIA H200/9.0/132"]\n', {})
    assert [device.slug for device in read.gpu.classes] == ["nvidia-h200-cc9.0-132sm"]
    read = settings(tmp_path, "", {}, TILEBUILD_GPU_DEVICES="A/9.0/4, B/10.0/8")
    assert [device.name for device in read.gpu.classes] == ["A", "B"]
    assert "'H200' is not a device class" in error(tmp_path, '[gpu]\ndevices = ["H200"]\n')
