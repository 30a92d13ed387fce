"""Builds as processes: interrupted, killed, and side by side."""

from __future__ import annotations

import signal
import time

import pytest

from tests.end_to_end.space import Space


def test_a_build_makes_files(space: Space) -> None:
    assert "//text:count  ok" in space.ok("build", "//text:count").out
    assert space.read("text/count/count.txt") == "2\n"


def test_an_interrupt_keeps_what_is_finished(space: Space) -> None:
    slow = 'genrule(name = "slow", srcs = ["//text:count"], outs = ["s"], cmd = "sleep 60; cp $(SRCS) $@")'
    space.write("slow/BUILD", slow)
    process = space.start("build", "//slow")
    while "started" not in (line := process.stderr.readline()) and "//text:count" not in line:  # type: ignore[union-attr]
        assert line, "ended early"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 8
    assert "interrupted: what was finished is kept" in out
    assert space.ok("build", "//text:count").counts == {"cached": 2}


def test_a_kill_loses_nothing_and_poisons_nothing(space: Space) -> None:
    command = "cat $(SRCS) > $@; echo {0} >> $@"
    rule = f'genrule(name = "s{{0}}", srcs = ["//text:upper"], outs = ["o{{0}}"], cmd = "{command}")'
    steps = "\n".join(rule.format(i) for i in range(40))
    space.write("many/BUILD", steps)
    for delay in (0.35, 0.5, 0.7):
        process = space.start("build", "//many/...")
        time.sleep(delay)
        process.kill()
        process.communicate()
    space.ok("build", "//many/...")
    for i in range(40):
        assert space.read(f"many/s{i}/o{i}") == f"A\nB\n{i}\n"


def test_a_second_build_waits_for_the_first(space: Space) -> None:
    space.write("slow/BUILD", 'genrule(name = "slow", outs = ["s"], cmd = "sleep 2; echo x > $@")')
    first = space.start("build", "//slow")
    lock = space.root / "tilebuild-out/.tilebuild/lock"
    while not (lock.exists() and lock.read_text()):
        time.sleep(0.01)
    second = space.ok("build", "//text:count")
    assert f"waiting for another build of this workspace (process {first.pid})" in second.err
    assert first.wait(timeout=30) == 0
    first.communicate()


def test_questions_do_not_wait_for_a_build(space: Space) -> None:
    space.write("slow/BUILD", 'genrule(name = "slow", outs = ["s"], cmd = "sleep 30; echo x > $@")')
    process = space.start("build", "//slow")
    lock = space.root / "tilebuild-out/.tilebuild/lock"
    while not (lock.exists() and lock.read_text()):
        time.sleep(0.01)
    started = time.monotonic()
    for question in (["query", "//..."], ["info"], ["why", "//text:count"], ["log"]):
        space.ok(*question)
    assert time.monotonic() - started < 15
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 8


@pytest.mark.parametrize("workers", [[], ["--no-workers"]])
def test_with_and_without_the_warm_worker(space: Space, workers: list[str]) -> None:
    assert space.ok("build", "//text:count", *workers).counts == {"ran": 2}
