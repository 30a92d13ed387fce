"""The state machine alone: no files, no processes."""

from __future__ import annotations

import pytest

from tests.execution.space import made, shell, source
from tilebuild.execution.schedule import Schedule, State

A = shell("", [source("s")], [made("a")])
B = shell("", [made("a")], [made("b")])
C = shell("", [made("b")], [made("c")])


def ready(schedule: Schedule) -> list[int]:
    found = []
    while (index := schedule.pop_ready()) is not None:
        found.append(index)
    return found


def test_an_action_is_ready_when_its_inputs_are_made() -> None:
    schedule = Schedule([C, B, A])
    assert ready(schedule) == [2]
    schedule.done(2, {made("a"): 1})
    assert ready(schedule) == [1]
    schedule.queue(1)
    assert schedule.pop_startable() == 1
    schedule.done(1, {made("b"): 1})
    assert ready(schedule) == [0]
    schedule.done(0, {made("c"): 1})
    assert schedule.unfinished == 0


def test_a_failure_blocks_the_rest_of_the_chain() -> None:
    schedule = Schedule([A, B, C])
    assert ready(schedule) == [0]
    schedule.failed(0)
    assert {schedule.pop_resolved(), schedule.pop_resolved()} == {1, 2}
    assert schedule.pop_resolved() is None
    assert {schedule.state(1), schedule.state(2)} == {State.BLOCKED}
    assert schedule.unfinished == 0


def test_an_optional_input_that_was_skipped_does_not_stop_anything() -> None:
    guarded = shell("", [], [made("g")], guard=made("a"))
    choose = shell("", [], [made("c")], optional=[made("g")])
    schedule = Schedule([A, guarded, choose])
    schedule.done(ready(schedule)[0], {made("a"): 0})
    assert schedule.state(1) is State.SKIPPED
    assert ready(schedule) == [2]


def test_an_optional_input_that_failed_blocks() -> None:
    choose = shell("", [], [made("c")], optional=[made("a")])
    schedule = Schedule([A, choose])
    schedule.failed(ready(schedule)[0])
    assert schedule.state(1) is State.BLOCKED


def test_a_negative_guard_skips_without_waiting_for_inputs() -> None:
    guarded = shell("", [made("b")], [made("g")], guard=made("a"))
    schedule = Schedule([A, B, guarded])
    schedule.done(ready(schedule)[0], {made("a"): 0})
    assert schedule.state(2) is State.SKIPPED


def test_a_serial_resource_parks_the_others() -> None:
    schedule = Schedule(
        [shell("", [], [made(n)], serial="cargo") for n in "ab"] + [shell("", [], [made("c")])]
    )
    for index in ready(schedule):
        schedule.queue(index)
    assert [schedule.pop_startable() for _ in range(3)] == [0, 2, None]
    schedule.failed(0)
    assert schedule.pop_startable() == 1


def test_a_long_chain_is_blocked_at_once() -> None:
    chain = [shell("", [made(str(i))], [made(str(i + 1))]) for i in range(5000)]
    schedule = Schedule(chain)
    schedule.failed(ready(schedule)[0])
    assert schedule.unfinished == 0
    assert schedule.state(4999) is State.BLOCKED


def test_two_makers_of_one_file_are_refused() -> None:
    with pytest.raises(ValueError, match="two actions make a"):
        Schedule([A, A])


def test_an_end_is_final() -> None:
    schedule = Schedule([A])
    schedule.failed(0)
    with pytest.raises(ValueError, match="already"):
        schedule.done(0, {})
