"""The documents stay true: the paths and commands that they name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilebuild.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("README.md", "ARCHITECTURE.md", "docs/BUILD_REFERENCE.md")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths_exist(document: str) -> None:
    text = (ROOT / document).read_text()
    folders = "tilebuild|rules|tests|kernels|cache|scripts|docs"
    paths = re.findall(rf"(?:`|\(|^|\s)((?:{folders})/[\w/]+[\w.]*)", text)
    assert paths
    missing = [path for path in paths if not (ROOT / path).exists()]
    assert not missing


def test_commands_of_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text()
    named = set(re.findall(r"(?:`|^|bin/)tilebuild ([a-z]+)", text, re.MULTILINE))
    assert {"build", "test", "query", "show", "why", "doctor", "fetch"} <= named
    assert named <= set(COMMANDS)
