"""Where a workspace lies and where its outputs go. Knows no BUILD file and no target."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tilebuild.action import Artifact
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError
from tilebuild.settings import SETTINGS_FILE, Settings, load_settings

PROJECT_FILE = "pyproject.toml"


@dataclass(frozen=True)
class Workspace:
    """`root` holds the settings file; `output` receives what is built. Both are absolute."""

    root: Path
    output: Path

    def path_of(self, artifact: Artifact) -> Path:
        """Where the bytes of an artifact lie, or will lie."""
        if artifact.location:
            return Path(artifact.location)
        return (self.root if artifact.source else self.output) / artifact.path

    def folder(self, cwd: Path) -> str:
        """The current folder relative to the root, as patterns need it; empty for the root itself."""
        try:
            relative = cwd.resolve().relative_to(self.root)
        except ValueError:
            return ""
        return "" if relative == Path() else relative.as_posix()


def find_root(start: Path) -> Path:
    """The nearest folder from `start` upwards that is the root of a workspace. Raises DiagnosticError."""
    here = start.resolve()
    for folder in (here, *here.parents):
        if (folder / SETTINGS_FILE).is_file() or _has_table(folder / PROJECT_FILE):
            return folder
    raise DiagnosticError(
        Diagnostic(
            f"{start} is not inside a tilebuild workspace",
            Blame.BUILD_FILE,
            help=f"a workspace is a folder with a file `{SETTINGS_FILE}` (it may be empty), "
            f"or a `{PROJECT_FILE}` with a table [tool.tilebuild]: touch {SETTINGS_FILE}",
        )
    )


def open_workspace(
    start: Path, overrides: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None
) -> tuple[Workspace, Settings]:
    """Finds the workspace around `start` and reads its settings. Raises DiagnosticError."""
    root = find_root(start)
    settings = load_settings(root, overrides or {}, os.environ if environ is None else environ)
    return Workspace(root, root / settings.output), settings


def _has_table(project_file: Path) -> bool:
    try:
        text = project_file.read_bytes()
    except OSError:
        return False
    if b"tilebuild" not in text:
        return False
    try:
        return "tilebuild" in tomllib.loads(text.decode()).get("tool", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        # Not ours to judge: a broken file that mentions us will be reported when it is read as settings.
        return b"[tool.tilebuild" in text
