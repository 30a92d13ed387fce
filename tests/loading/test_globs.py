"""glob(): the cases that Bazel answers, with links to folders not followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilebuild.loading.globs import Folders, GlobError, glob

FILES = (
    "a.cu",
    "b.cu",
    ".dot.cu",
    "d/c.cu",
    "d/e/f.cu",
    ".hid/h.cu",
    "BUILD",
    "sub/BUILD",
    "sub/x.cu",
    "out/o.cu",
)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    for file in FILES:
        path = tmp_path / "p" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "p/link.cu").symlink_to("a.cu")
    (tmp_path / "p/broken.cu").symlink_to("nowhere")
    (tmp_path / "p/dl").symlink_to("d")
    return Folders(tmp_path, ignored=frozenset({"p/out"}))


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (["*.cu"], [], "a.cu b.cu link.cu"),
        (["**/*.cu"], [], ".hid/h.cu a.cu b.cu d/c.cu d/e/f.cu link.cu"),
        (["**"], [], ".dot.cu .hid/h.cu BUILD a.cu b.cu d/c.cu d/e/f.cu link.cu"),
        (["*/c.cu"], [], "d/c.cu"),
        (["d/**"], [], "d/c.cu d/e/f.cu"),
        (["d/**/f.cu"], [], "d/e/f.cu"),
        (["**/*.cu"], ["d/**", "*.cu"], ".hid/h.cu"),
        (["a.cu", "*.cu"], [], "a.cu b.cu link.cu"),
        (["nosuch.cu"], [], ""),
        ([".*"], [], ".dot.cu"),
        (["a.c*"], [], "a.cu"),
        (["sub/x.cu"], [], ""),
    ],
)
def test_glob(folders: Folders, include: list[str], exclude: list[str], expected: str) -> None:
    assert glob(folders, "p", include, exclude) == expected.split()


def test_folders_count_when_asked_for(folders: Folders) -> None:
    assert glob(folders, "p", ["*"], [], with_folders=True) == [
        *(".dot.cu", ".hid", "BUILD", "a.cu", "b.cu", "d", "link.cu"),
    ]


@pytest.mark.parametrize("pattern", ["?.cu", "../*.cu", "/abs/*", "**.cu", "a//b", "", "./a"])
def test_forbidden_patterns(folders: Folders, pattern: str) -> None:
    with pytest.raises(GlobError):
        glob(folders, "p", [pattern], [])


def test_only_listed_folders_are_remembered(folders: Folders) -> None:
    glob(folders, "p", ["*.cu"], [])
    assert folders.seen == {"p"}
    glob(folders, "p", ["**/*.cu"], [])
    assert folders.seen == {"p", "p/d", "p/d/e", "p/.hid", "p/sub"}
