"""Digests are remembered exactly as long as a file cannot have changed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tilebuild.cache.digest import digest_of_bytes
from tilebuild.execution.inputs import FileDigests, is_settled

SECOND = 1_000_000_000


def later() -> int:
    return time.time_ns() + 10 * SECOND


def test_an_unchanged_file_is_hashed_once(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"1")
    digests = FileDigests(clock=later)
    for _ in range(3):
        assert digests.digest(str(tmp_path / "f")).digest == digest_of_bytes(b"1")
    assert digests.hashed == 1


def test_a_file_written_just_now_is_hashed_again(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"1")
    digests = FileDigests(clock=lambda: os.stat(tmp_path / "f").st_mtime_ns)
    digests.digest(str(tmp_path / "f"))
    digests.digest(str(tmp_path / "f"))
    assert digests.hashed == 2


def test_equal_size_and_restored_time_do_not_hide_a_change(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"1")
    digests = FileDigests(clock=later)
    digests.digest(str(file))
    before = file.stat()
    file.write_bytes(b"2")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert digests.digest(str(file)).digest == digest_of_bytes(b"2")


def test_a_replaced_file_is_hashed_again(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"1")
    digests = FileDigests(clock=later)
    digests.digest(str(file))
    (tmp_path / "g").write_bytes(b"2")
    os.replace(tmp_path / "g", file)
    assert digests.digest(str(file)).digest == digest_of_bytes(b"2")


def test_memory_survives_the_process(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"1")
    first = FileDigests(clock=later)
    first.digest(str(tmp_path / "f"))
    first.save(tmp_path / "memory")
    second = FileDigests(clock=later)
    second.load(tmp_path / "memory")
    second.digest(str(tmp_path / "f"))
    assert second.hashed == 0


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 0, "files": []}', '{"version": 1, "files": [[1]]}']
)
def test_memory_that_cannot_be_used_is_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / "memory").write_text(text)
    (tmp_path / "f").write_bytes(b"1")
    digests = FileDigests(clock=later)
    digests.load(tmp_path / "memory")
    assert digests.digest(str(tmp_path / "f")).digest == digest_of_bytes(b"1")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        FileDigests().digest(str(tmp_path))


@pytest.mark.parametrize(
    ("age_ns", "ctime_ns", "settled"),
    [
        (25_000_000, 123_456_789, True),
        (15_000_000, 123_456_789, False),
        (25_000_000, 123_000_000, False),  # a file system that counts milliseconds may count 2 s
        (3 * SECOND, 123_000_000, True),
    ],
)
def test_how_old_is_old_enough(age_ns: int, ctime_ns: int, settled: bool) -> None:
    assert is_settled(0, ctime_ns, ctime_ns + age_ns) is settled
