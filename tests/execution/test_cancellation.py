"""A build that another thread ends: what is finished stays, what is not leaves nothing behind."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.execution.space import Space, made, shell, statuses
from tilebuild.cache.disk import DiskStore
from tilebuild.cache.store import Cache
from tilebuild.events import ActionFinished, ActionStarted, Event
from tilebuild.execution.executor import Execution, Executor, Options
from tilebuild.execution.history import History
from tilebuild.execution.inputs import FileDigests
from tilebuild.execution.interrupts import Cancellation
from tilebuild.execution.process import FreshProcesses
from tilebuild.execution.publish import Publisher

QUICK = shell("echo quick > quick", [], [made("quick")])
SLOW = shell("cat quick > slow; sleep 600", [made("quick")], [made("slow")])


def build(space: Space, cancellation: Cancellation, *, cancel_at_start_of: str = "") -> Execution:
    def observe(event: Event) -> None:
        space.events.append(event)
        if isinstance(event, ActionStarted) and event.action.outputs[0][0] == cancel_at_start_of:
            threading.Timer(0.1, cancellation.request).start()

    store, digests = DiskStore(space.store_folder), FileDigests()
    executor = Executor(
        cache=Cache(store, store),
        runner=FreshProcesses(),
        digests=digests,
        history=History(space.scratch / "history"),
        publisher=Publisher(space.output, store, digests),
        source_path=lambda artifact: str(space.root / artifact.path),
        scratch=space.scratch,
        options=Options(jobs=2),
        observe=observe,
    )
    try:
        return executor.execute([QUICK, SLOW], (), cancellation)
    finally:
        store.close()


def test_the_running_action_is_killed_and_finished_ones_are_kept(tmp_path: Path) -> None:
    space = Space(tmp_path)
    execution = build(space, Cancellation(), cancel_at_start_of="slow")
    assert execution.interrupted
    assert statuses(execution) == {"quick": "ran", "slow": "cancelled"}
    again = build(space, Cancellation(), cancel_at_start_of="slow")
    assert statuses(again) == {"quick": "hit", "slow": "cancelled"}
    assert not list((space.scratch / "actions").iterdir())


def test_a_build_that_is_out_of_date_before_it_begins_runs_nothing(tmp_path: Path) -> None:
    space = Space(tmp_path)
    cancellation = Cancellation()
    cancellation.request()
    execution = build(space, cancellation)
    assert execution.interrupted
    assert statuses(execution) == {"quick": "cancelled", "slow": "cancelled"}
    assert not any(isinstance(event, ActionStarted) for event in space.events)
    assert all(event.outcome.key is None for event in space.events if isinstance(event, ActionFinished))


def test_a_request_after_the_end_changes_nothing() -> None:
    cancellation = Cancellation()
    woken: list[int] = []
    cancellation.attach(lambda: woken.append(1))
    cancellation.attach(None)
    cancellation.request()
    cancellation.request()
    assert cancellation.requested
    assert woken == []
