"""The command itself, with the kernel's events and real editors' steps. Builds are counted, never timed."""

from __future__ import annotations

import json
import queue
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.space import Space
from tests.watching.test_saving import jetbrains, vim, vscode

pytestmark = pytest.mark.slow

_PATIENCE_S = 60.0

_BUILD = """
package(default_visibility = ["//visibility:public"])
genrule(name = "joined", srcs = glob(["*.txt"]), outs = ["joined.out"], cmd = "cat $(SRCS) > $@")
"""


class Watch:
    """A running `tilebuild watch --json`."""

    def __init__(self, space: Space, *options: str) -> None:
        self.process = space.start("watch", "//text:joined", "--json", *options)
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def next(self, *kinds: str) -> dict[str, Any]:
        """The next event of one of these kinds."""
        while True:
            event: dict[str, Any] = json.loads(self._lines.get(timeout=_PATIENCE_S))
            if event["event"] in kinds:
                return event

    def report(self) -> dict[str, Any]:
        return self.next("report")

    def after(self, save: Callable[[], object]) -> tuple[list[str], dict[str, Any]]:
        """What one save led to: the names of the files that changed, and the report."""
        save()
        changed = self.next("changed", "report")
        assert changed["event"] == "changed"
        return [file["path"].removeprefix("text/") for file in changed["files"]], self.next(
            "report", "error", "changed"
        )

    def is_silent(self) -> bool:
        """Whether nothing more is built; waits longer than any debounce."""
        time.sleep(1.5)
        said = [json.loads(self._lines.get())["event"] for _ in range(self._lines.qsize())]
        return set(said) <= {"notice"}

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(_PATIENCE_S)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)


def played(editor: Iterator[float]) -> Callable[[], None]:
    def play() -> None:
        for pause in editor:
            time.sleep(min(pause, 0.05))

    return play


@pytest.fixture
def space(tmp_path: Path) -> Space:
    found = Space(tmp_path)
    found.write("text/BUILD", _BUILD)
    found.write("text/in.txt", "old\n")
    return found


@pytest.fixture
def start(space: Space) -> Iterator[Callable[..., Watch]]:
    running: list[Watch] = []

    def begin(*options: str) -> Watch:
        running.append(Watch(space, *options))
        assert running[-1].report()["exit_code"] == 0
        return running[-1]

    yield begin
    for watch in running:
        watch.process.kill()
        watch.process.wait()


@pytest.mark.parametrize("options", [(), ("--poll",)], ids=["events", "polling"])
def test_each_save_is_one_build(space: Space, start: Callable[..., Watch], options: tuple[str, ...]) -> None:
    watch = start(*options)
    file = space.root / "text/in.txt"
    for editor in (vim, vscode, jetbrains):
        names, report = watch.after(played(editor(file)))
        assert names == ["in.txt"]
        assert report["exit_code"] == 0
        assert space.read("text/joined/joined.out") == file.read_text()
        assert watch.is_silent()
        file.write_text("old\n")
        assert watch.report()["exit_code"] == 0
    file.touch()
    file.write_text("old\n")
    assert watch.is_silent()
    assert watch.end() == 8


def test_new_files_build_files_and_settings(space: Space, start: Callable[..., Watch]) -> None:
    watch = start()
    names, report = watch.after(lambda: space.write("text/more.txt", "more\n"))
    assert names == ["more.txt"]
    assert space.read("text/joined/joined.out") == "old\nmore\n"

    names, error = watch.after(lambda: space.write("text/BUILD", "genrule("))
    assert (names, error["event"], error["exit_code"]) == (["BUILD"], "error", 7)
    assert error["diagnostics"][0]["span"][:2] == ["text/BUILD", 1]
    names, report = watch.after(lambda: space.write("text/BUILD", _BUILD))
    assert (names, report["exit_code"]) == (["BUILD"], 0)

    names, error = watch.after(lambda: space.write("tilebuild.toml", "jobz = 1\n"))
    assert (names, error["event"]) == (["tilebuild.toml"], "error")
    names, report = watch.after(lambda: space.write("tilebuild.toml", "jobs = 1\n"))
    assert (names, report["exit_code"]) == (["tilebuild.toml"], 0)

    names, report = watch.after((space.root / "text/more.txt").unlink)
    assert space.read("text/joined/joined.out") == "old\n"
    assert watch.is_silent()
    assert watch.end(signal.SIGTERM) == 8


def test_a_failure_does_not_end_it(space: Space, start: Callable[..., Watch]) -> None:
    watch = start()
    broken = _BUILD.replace("cat $(SRCS)", "false")
    _, report = watch.after(lambda: space.write("text/BUILD", broken))
    assert report["exit_code"] == 1
    _, report = watch.after(lambda: space.write("text/BUILD", _BUILD))
    assert report["exit_code"] == 0


def test_a_newer_save_supersedes_the_build_that_runs(space: Space, start: Callable[..., Watch]) -> None:
    slow = "cat $(SRCS) > $@; grep -q slow $(SRCS) && sleep 600 || true"
    space.write("text/BUILD", _BUILD.replace("cat $(SRCS) > $@", slow))
    watch = start()
    space.write("text/in.txt", "slow\n")
    watch.next("started")
    space.write("text/in.txt", "fast\n")
    assert watch.report()["exit_code"] == 8
    assert watch.next("changed")
    assert watch.report()["exit_code"] == 0
    assert space.read("text/joined/joined.out") == "fast\n"
    space.write("text/in.txt", "slow\n")  # what was stopped was not remembered as done
    watch.next("started")
    assert watch.end() == 8


def test_a_checkout_of_a_thousand_files_is_one_build(space: Space, start: Callable[..., Watch]) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
        subprocess.run(["git", *identity, *arguments], cwd=space.root, check=True, capture_output=True)

    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    git("init", "-b", "old")
    space.write(".gitignore", "tilebuild-out\n")
    for text in ("old", "new"):
        for number in range(1000):
            space.write(f"text/{number}.txt", f"{text} {number}\n")
        git("add", ".")
        git("commit", "-m", text)
        git("branch", f"is-{text}")
    watch = start()
    names, report = watch.after(lambda: git("checkout", "is-old"))
    assert len(names) == 1000
    assert report["exit_code"] == 0
    assert space.read("text/joined/joined.out").count("old") == 1001
    assert watch.is_silent()


@pytest.mark.parametrize("options", [(), ("--poll",)], ids=["events", "polling"])
def test_after_a_storm_of_saves_the_last_one_is_built(
    space: Space, start: Callable[..., Watch], options: tuple[str, ...]
) -> None:
    watch = start(*options)
    chance = random.Random(7)
    file = space.root / "text/in.txt"
    for number in range(40):
        played(chance.choice([vim, vscode, jetbrains])(file))()
        file.write_text(f"{number}\n")
        if chance.random() < 0.3:
            shutil.rmtree(file.parent)
            time.sleep(chance.choice([0.0, 0.3, 1.0]))
            space.write("text/BUILD", _BUILD)
            space.write("text/in.txt", f"{number}\n")
        time.sleep(chance.choice([0.0, 0.1, 0.2, 0.4]))
    while not watch.is_silent():
        pass
    assert space.read("text/joined/joined.out") == file.read_text()
