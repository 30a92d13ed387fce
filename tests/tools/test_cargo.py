"""How cargo is run: with the environment that the tool states, and room for its linkers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilebuild.tools.cargo import Cargo


def test_linkers_write_where_the_action_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    cargo = Cargo("/usr/bin/env", "", "", tmp_path, tmp_path, tmp_path, "", {"PATH": "/usr/bin"}, {})
    printed, _ = cargo.start([], tmp_path).communicate()
    assert set(printed.splitlines()) == {"PATH=/usr/bin", f"TMPDIR={tmp_path}"}
