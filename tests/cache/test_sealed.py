"""A sealed file is read whole or not at all."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tilebuild.cache.sealed import read_sealed, replace_file, seal, unseal, write_sealed

DATA = {"files": [["a/b", 1, 2.5], ["ü", None, True]]}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_sealed(tmp_path / "f", DATA)
    assert read_sealed(tmp_path / "f") == DATA
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_nothing_is_read_from_what_is_not_there(tmp_path: Path) -> None:
    assert read_sealed(tmp_path / "f") is None


def test_any_damage_shows() -> None:
    whole = seal(DATA)
    chance = random.Random(1)
    for at in range(len(whole)):
        assert unseal(whole[:at]) is None
        changed = bytearray(whole)
        changed[at] ^= 1 << chance.randrange(8)
        assert unseal(bytes(changed)) is None


def test_a_failure_leaves_the_old_text_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_file(tmp_path / "f", b"old")

    def full(*_: object) -> None:
        raise OSError(28, "full")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="full"):
        replace_file(tmp_path / "f", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_bytes() == b"old"
