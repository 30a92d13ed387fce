from __future__ import annotations

import pytest

from tilebuild.watching.editors import is_transient


@pytest.mark.parametrize(
    "name",
    [
        "softmax.py~",
        "4913",
        ".softmax.py.swp",
        ".softmax.py.swx",
        ".#softmax.py",
        "#softmax.py#",
        "softmax.py___jb_tmp___",
        "softmax.py___jb_old___",
        ".softmax.py.vsctmp",
        ".goutputstream-4F2QX1",
        "sedAbC123",
        "__pycache__",
        ".ruff_cache",
        ".git",
    ],
)
def test_what_editors_leave_is_no_news(name: str) -> None:
    assert is_transient(name)


@pytest.mark.parametrize(
    "name",
    ["softmax.py", "BUILD", "BUILD.tile", "defs.bzl", ".hidden.py", "sedan.py", "4914", "tilebuild.toml"],
)
def test_sources_are(name: str) -> None:
    assert not is_transient(name)
