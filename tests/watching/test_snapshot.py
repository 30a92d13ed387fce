from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from tilebuild.watching.snapshot import Change, Scope, Snapshot, changes, extended, take


def contents(path: str) -> object:
    return Path(path).read_bytes()


@pytest.fixture
def scope(tmp_path: Path) -> Scope:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(name)
    files = frozenset(str(tmp_path / name) for name in ("a.py", "b.py", "missing.py"))
    return Scope(files, frozenset({str(tmp_path), str(tmp_path / "sub")}), frozenset({str(tmp_path / "out")}))


def difference(scope: Scope, before: Snapshot, root: Path) -> dict[str, str]:
    found = changes(before, take(scope, contents))
    return {change.path.removeprefix(f"{root}/"): change.kind for change in found}


def test_saved_new_and_gone(scope: Scope, tmp_path: Path) -> None:
    before = take(scope, contents)
    (tmp_path / "a.py").write_text("other")
    (tmp_path / "b.py").unlink()
    (tmp_path / "missing.py").write_text("here")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/c.py").write_text("")
    assert difference(scope, before, tmp_path) == {
        "a.py": "saved",
        "b.py": "gone",
        "missing.py": "new",
        "sub/": "new",
        "sub/c.py": "new",
    }


def test_equal_contents_are_no_change(scope: Scope, tmp_path: Path) -> None:
    before = take(scope, contents)
    (tmp_path / "a.py").touch()
    (tmp_path / "b.py").write_text("b.py")
    assert difference(scope, before, tmp_path) == {}


def test_what_editors_leave_and_what_is_ignored_is_no_entry(scope: Scope, tmp_path: Path) -> None:
    before = take(scope, contents)
    for name in (".a.py.swp", "a.py~"):
        (tmp_path / name).touch()
    (tmp_path / ".#a.py").symlink_to("nobody@nowhere")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "out").mkdir()
    assert difference(scope, before, tmp_path) == {}


def test_a_folder_in_place_of_a_file_is_a_change(scope: Scope, tmp_path: Path) -> None:
    before = take(scope, contents)
    (tmp_path / "a.py").unlink()
    (tmp_path / "a.py").mkdir()
    assert difference(scope, before, tmp_path)["a.py"] == "saved"


def test_a_file_that_vanishes_while_it_is_read_is_gone(scope: Scope, tmp_path: Path) -> None:
    before = take(scope, contents)

    def vanishing(path: str) -> object:
        if path.endswith("a.py"):
            os.unlink(path)
        return contents(path)

    assert Change(str(tmp_path / "a.py"), "gone") in changes(before, take(scope, vanishing))


def test_what_was_read_counts_and_not_what_is_there_now(scope: Scope, tmp_path: Path) -> None:
    read = Scope(scope.files, scope.folders, read={str(tmp_path / "a.py"): b"as the build read it"})
    baseline, restless = extended(Snapshot({}, {}), read, contents)
    assert difference(scope, baseline, tmp_path) == {"a.py": "saved"}
    assert restless == ()


def test_a_folder_that_changed_while_it_was_first_read_is_not_trusted(scope: Scope, tmp_path: Path) -> None:
    started = time.time_ns()
    os.utime(tmp_path, ns=(started, started + 1))
    read = Scope(scope.files, scope.folders, since_ns=started)
    baseline, restless = extended(Snapshot({}, {}), read, contents)
    assert [change.path for change in restless] == [str(tmp_path)]
    assert extended(baseline, read, contents)[1] == ()  # known from before the build


def test_links_are_watched_where_they_lead(tmp_path: Path) -> None:
    root, shared = tmp_path / "root", tmp_path / "shared"
    for folder in (root, shared):
        folder.mkdir()
    (shared / "real.py").touch()
    (shared / "second.py").symlink_to("real.py")
    (root / "first.py").symlink_to("../shared/second.py")
    names, folders = Scope(frozenset({str(root / "first.py")})).places(str(root))
    assert names == {"first.py", "second.py", "real.py"}
    assert {os.path.realpath(folder) for folder in folders} == {str(root), str(shared)}


def test_all_folders_up_to_the_root_are_watched(tmp_path: Path) -> None:
    deep = tmp_path / "a/b/c"
    deep.mkdir(parents=True)
    _, folders = Scope(frozenset({str(deep / "x.py")})).places(str(tmp_path))
    assert folders == {str(tmp_path / part) for part in ("", "a", "a/b", "a/b/c")}
    shutil.rmtree(tmp_path / "a")
    assert Scope(folders=folders).places(str(tmp_path))[1] == folders
