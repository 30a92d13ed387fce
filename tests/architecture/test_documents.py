"""The documents stay true: the paths and commands that they name exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tilebuild.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("README.md", "ARCHITECTURE.md")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths_exist(document: str) -> None:
    text = (ROOT / document).read_text()
    paths = re.findall(r"`((?:tilebuild|rules|tests|kernels|cache|scripts)/[\w./]*)`", text)
    assert paths
    missing = [path for path in paths if not (ROOT / path).exists()]
    assert not missing


def test_commands_of_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text()
    commands = {shlex.split(line)[0] for line in re.findall(r"\btilebuild (\w[^`\n]*)", text) if line[0].islower()}
    words = {word for word in commands if re.fullmatch(r"[a-z]+", word)}
    unknown = {word for word in words if word in {"build", "test", "query", "show", "why", "doctor", "fetch"}} - set(COMMANDS)
    assert not unknown
    assert {"build", "test", "query", "show", "why", "doctor", "fetch"} <= words
