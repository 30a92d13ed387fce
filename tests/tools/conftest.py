"""Fixtures of the tools' tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.front_end import FrontEnd


@pytest.fixture
def front_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FrontEnd:
    return FrontEnd(tmp_path, monkeypatch)
