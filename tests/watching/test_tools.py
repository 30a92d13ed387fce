from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from tilebuild.action import Action, Tool
from tilebuild.cli.watch import _in_words, _Tools
from tilebuild.session.dependencies import Reads
from tilebuild.toolchain import watched
from tilebuild.watching.snapshot import Change


def test_a_watch_knows_when_its_tools_are_out_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "rustc"
    compiler.touch()

    def files(tools: Collection[str]) -> tuple[str, ...]:
        return (str(compiler),) if "cargo" in tools else ()

    monkeypatch.setattr(watched, "files", files)
    monkeypatch.setattr(watched, "folders", lambda: (str(tmp_path),))
    check = Action("CargoCheck", ("cargo",), (), (), (Tool("cargo", "1"),))
    tools = _Tools()
    assert not tools.have_changed()
    tools.note(Reads(0, {}, frozenset(), "", actions=(check,)))
    assert not tools.have_changed()
    compiler.write_text("another")
    tools.note(Reads(0, {}, frozenset(), "", actions=(check,)))  # does not count as known
    assert tools.have_changed()


def test_changes_in_words() -> None:
    root = Path("/w")
    changes = [Change(f"/w/kernels/{name}.py", "saved") for name in "abcde"]
    assert _in_words(changes[:1], root) == "kernels/a.py saved"
    assert _in_words(changes[:4], root) == "kernels/a.py, kernels/b.py, kernels/c.py, kernels/d.py saved"
    assert _in_words(changes, root) == "kernels/a.py, kernels/b.py, kernels/c.py and 2 more saved"
    assert _in_words([changes[0], Change("/w/b.py", "new")], root) == "kernels/a.py, b.py changed"
