from __future__ import annotations

from tilebuild.watching.loops import Loops


def test_a_file_that_changes_during_every_build_is_named_once() -> None:
    loops = Loops(suspicious=3)
    found = [loops.note({"a.py", other}, during_build=True) for other in ("b.py", "c.py", "d.py", "e.py")]
    assert found == ["", "", "a.py", ""]


def test_a_change_between_builds_is_a_persons() -> None:
    loops = Loops(suspicious=2)
    for _ in range(5):
        assert loops.note({"a.py"}, during_build=True) == ""
        assert loops.note({"a.py"}, during_build=False) == ""
