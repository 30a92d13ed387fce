from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tilebuild.watching import inotify
from tilebuild.watching.hints import EventHints, PollingHints, refusal, silent_file_system
from tilebuild.watching.inotify import Inotify
from tilebuild.watching.snapshot import Scope


@pytest.fixture
def hints(tmp_path: Path) -> EventHints:
    (tmp_path / "a.py").touch()
    found = EventHints(str(tmp_path))
    found.cover(Scope(frozenset({str(tmp_path / "a.py")}), frozenset({str(tmp_path)})))
    found.arrived(100.0)
    return found


def test_only_what_can_matter_is_a_hint(hints: EventHints, tmp_path: Path) -> None:
    assert not hints.arrived(101.0)
    (tmp_path / ".a.py.swp").write_text("swap")
    assert not hints.arrived(101.0)
    (tmp_path / "a.py").write_text("text")
    assert hints.arrived(101.0)
    (tmp_path / "new.py").touch()
    assert hints.arrived(101.0)
    with (tmp_path / "new.py").open("a") as file:
        file.write("nobody reads this")
    assert not hints.arrived(101.0)


def test_silence_is_not_trusted_for_ever(hints: EventHints) -> None:
    assert not hints.arrived(100.0 + hints.interval_s / 2)
    assert hints.arrived(100.0 + hints.interval_s)


def test_a_folder_that_is_made_again_is_covered_anew(hints: EventHints, tmp_path: Path) -> None:
    sub = tmp_path / "sub"
    sub.mkdir()
    scope = Scope(frozenset({str(sub / "a.py")}))
    assert hints.cover(scope)
    assert not hints.cover(scope)
    sub.rmdir()
    sub.mkdir()
    assert hints.cover(scope)
    hints.arrived(101.0)
    (sub / "a.py").touch()
    assert hints.arrived(101.0)


def test_lost_events_are_a_hint(tmp_path: Path) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 20_000:
        pytest.skip("the queue is too long to fill it quickly")
    watcher = Inotify()
    watcher.cover([str(tmp_path)])
    for number in range(limit // 3 + 10):  # made, closed after writing, removed
        file = tmp_path / str(number)
        file.touch()
        file.unlink()
    assert watcher.read()[-1].mask & inotify.OVERFLOW
    watcher.close()


def test_polling_sees_files_and_entries(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.touch()
    hints = PollingHints()
    assert hints.cover(Scope(frozenset({str(file)}), frozenset({str(tmp_path)})))
    assert not hints.arrived(0.0)
    file.write_text("text")
    assert hints.arrived(0.0)
    assert not hints.arrived(0.0)
    (tmp_path / "new.py").touch()
    assert hints.arrived(0.0)


def test_a_change_between_two_rounds_of_polling_is_not_lost(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.touch()
    hints = PollingHints()
    scope = Scope(frozenset({str(file)}))
    hints.cover(scope)
    file.write_text("text")
    assert not hints.cover(scope)
    assert hints.arrived(0.0)


def test_a_limit_is_named_with_what_raises_it() -> None:
    text = refusal(OSError(errno.ENOSPC, "No space left on device"))
    assert "fs.inotify.max_user_watches" in text
    assert "sudo sysctl" in text
    assert "max_user_instances" in refusal(OSError(errno.EMFILE, "Too many open files"))
    assert refusal(OSError(errno.ENOSYS, "not here")) == "no events from the kernel: not here"


def test_network_file_systems_are_told_apart(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 0:20 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
        "40 22 0:45 / /home/me rw - nfs4 server:/home rw\n"
        "41 40 0:46 / /home/me/local rw - ext4 /dev/vdb rw\n"
        "42 22 0:47 / /mnt/c rw - 9p drvfs rw\n"
    )
    assert silent_file_system("/work", str(mounts)) == ""
    assert silent_file_system("/home/me/kernels", str(mounts)) == "nfs4"
    assert silent_file_system("/home/me/local/x", str(mounts)) == ""
    assert silent_file_system("/home/meet", str(mounts)) == ""
    assert silent_file_system("/mnt/c/Users", str(mounts)) == "9p"
