from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.space import TEXT_PACKAGE, Space


@pytest.fixture
def space(tmp_path: Path) -> Space:
    """A workspace with the package `text`."""
    found = Space(tmp_path)
    found.write("text/BUILD", TEXT_PACKAGE)
    found.write("text/in.txt", "a\nb\n")
    return found
