"""The documents stay true: the paths and commands that they name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilebuild.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("README.md", "ARCHITECTURE.md")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths_exist(document: str) -> None:
    text = (ROOT / document).read_text()
    paths = re.findall(r"(?:`|\(|^|\s)((?:tilebuild|rules|tests|kernels|cache|scripts)/[\w/]+[\w.]*)", text)
    assert paths
    missing = [path for path in paths if not (ROOT / path).exists()]
    assert not missing


def test_commands_of_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text()
    named = set(re.findall(r"(?:`|^|bin/)tilebuild ([a-z]+)", text, re.MULTILINE))
    assert {"build", "test", "query", "show", "why", "doctor", "fetch"} <= named
    assert named <= set(COMMANDS)
