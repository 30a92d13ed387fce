"""A host function is safe only where blocks of the grid are seen to keep to tiles of their own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.translator import case_file

HEAD = """import cuda.tile as ct


@ct.kernel
def k(x, out, n: int):
"""
LAUNCH = "array f32 4096\narray f32 4096\nscalar int32"
APART = {
    "at the block id": "ct.store(out, index=(ct.bid(0),), tile=ct.load(x, index=(ct.bid(0),), shape=(64,)))",
    "in a loop from the block id": (
        "for i in range(ct.bid(0), n, ct.num_blocks(0)):\n"
        "        ct.store(out, index=(i,), tile=ct.load(x, index=(0,), shape=(64,)))"
    ),
}
MEETING = {
    "two blocks in one tile": (
        "ct.store(out, index=(ct.bid(0) // 2,), tile=ct.load(x, index=(0,), shape=(64,)))"
    ),
    "a literal": "ct.store(out, index=(0,), tile=ct.load(x, index=(ct.bid(0),), shape=(64,)))",
    "tiles of two shapes": (
        "ct.store(out, index=(ct.bid(0),), tile=ct.load(x, index=(0,), shape=(64,)))\n"
        "    ct.store(out, index=(ct.bid(0),), tile=ct.load(x, index=(0,), shape=(32,)))"
    ),
    "a neighbour's tile read": (
        "ct.store(out, index=(ct.bid(0),), tile=ct.load(out, index=(ct.bid(0) + n,), shape=(64,)))"
    ),
    "all blocks, all tiles": (
        "for i in range(0, n, ct.num_blocks(0)):\n"
        "        ct.store(out, index=(i,), tile=ct.load(x, index=(0,), shape=(64,)))"
    ),
}

pytestmark = pytest.mark.skipif(shutil.which("rustfmt") is None, reason="rustfmt is not installed")


def _host(body: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The host functions of the port, after the device module."""
    for name, value in case_file.tools().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    case = case_file.Case(folder / "k.case", "", "k", f"{HEAD}    {body}\n", LAUNCH)
    assert case_file.python_side(case, folder)["ok"]
    head, text = case_file.translated(case, "typed-unchecked", folder)
    assert head == "rust typed-unchecked", text
    return text.partition("\n}\n")[2]


@pytest.mark.parametrize("body", APART.values(), ids=APART)
def test_blocks_apart(body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = _host(body, tmp_path, monkeypatch)
    assert "pub fn k(" in host
    assert "grid.1 > 1 || grid.2 > 1" in host  # the kernel keeps blocks apart along the first axis only


@pytest.mark.parametrize("body", MEETING.values(), ids=MEETING)
def test_blocks_that_may_meet(body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = _host(body, tmp_path, monkeypatch)
    assert "pub unsafe fn k(" in host
    assert "# Safety" in host
