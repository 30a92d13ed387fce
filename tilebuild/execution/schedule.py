"""Decides which action may run next. Knows nothing of files, keys, processes or caches.

    WANTED ──► READY ──► QUEUED ──► RUNNING ──► DONE      its result is there
       │         │                     └──────► FAILED
       │         └─► DONE                                 its result was found, nothing ran
       ├─► SKIPPED                                        its guard or an input is absent
       └─► BLOCKED                                        an action that it needs failed

Every transition passes `_set`, which wakes whoever waited for it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto

from tilebuild.action import Action, Artifact


class State(Enum):
    WANTED = auto()
    READY = auto()
    QUEUED = auto()
    RUNNING = auto()
    DONE = auto()
    FAILED = auto()
    SKIPPED = auto()
    BLOCKED = auto()


_FINAL = frozenset({State.DONE, State.FAILED, State.SKIPPED, State.BLOCKED})


class Schedule:
    """Actions are named by their index in the sequence given; earlier ones go first when several may run."""

    def __init__(self, actions: Sequence[Action]) -> None:
        self.actions = actions
        self._state = [State.WANTED] * len(actions)
        self._ready: list[int] = []
        self._queued: list[int] = []
        self._busy: set[str] = set()
        self._sizes: dict[Artifact, int] = {}
        self._resolved: list[int] = []
        self.unfinished = len(actions)
        self._producer = self._find_producers()
        self._waits_for: list[set[int]] = [self._producers_of(action) for action in actions]
        self._waiting: list[list[int]] = [[] for _ in actions]
        for index, producers in enumerate(self._waits_for):
            for producer in producers:
                self._waiting[producer].append(index)
        for index in range(len(actions)):
            self._reconsider(index)

    def state(self, index: int) -> State:
        return self._state[index]

    def pop_ready(self) -> int | None:
        """An action whose inputs are all known. The caller says next `done`, `queue` or `failed`."""
        return heapq.heappop(self._ready) if self._ready else None

    def queue(self, index: int) -> None:
        """The action has to run."""
        self._set(index, State.QUEUED)
        heapq.heappush(self._queued, index)

    def pop_startable(self) -> int | None:
        """A queued action whose serial resource is free; it holds the resource until it is `done` or
        `failed`.
        """
        parked = []
        found = None
        while self._queued and found is None:
            index = heapq.heappop(self._queued)
            if self.actions[index].serial in self._busy:
                parked.append(index)
            else:
                found = index
        for index in parked:
            heapq.heappush(self._queued, index)
        if found is not None:
            self._set(found, State.RUNNING)
        return found

    def done(self, index: int, sizes: Mapping[Artifact, int]) -> None:
        """The action's outputs are there, with these sizes."""
        self._sizes.update(sizes)
        self._set(index, State.DONE)

    def failed(self, index: int) -> None:
        self._set(index, State.FAILED)

    def pop_resolved(self) -> int | None:
        """The next action that became SKIPPED or BLOCKED, each once."""
        return self._resolved.pop(0) if self._resolved else None

    def _set(self, index: int, state: State) -> None:
        before = self._state[index]
        if before in _FINAL:
            raise ValueError(f"action {index} is {before.name} already")
        serial = self.actions[index].serial
        if serial and state is State.RUNNING:
            self._busy.add(serial)
        elif serial and before is State.RUNNING:
            self._busy.discard(serial)
        self._state[index] = state
        if state not in _FINAL:
            return
        self.unfinished -= 1
        if state in (State.SKIPPED, State.BLOCKED):
            self._resolved.append(index)
        for waiting in self._waiting[index]:
            self._waits_for[waiting].discard(index)
            self._reconsider(waiting)

    def _reconsider(self, index: int) -> None:
        if self._state[index] is not State.WANTED:
            return
        if self._is_blocked(index):
            self._set(index, State.BLOCKED)
        elif self._is_unneeded(index):
            self._set(index, State.SKIPPED)
        elif not self._waits_for[index]:
            self._set(index, State.READY)
            heapq.heappush(self._ready, index)

    def _is_blocked(self, index: int) -> bool:
        states = (self._state[producer] for producer in self._producers_of(self.actions[index]))
        return any(state in (State.FAILED, State.BLOCKED) for state in states)

    def _is_unneeded(self, index: int) -> bool:
        action = self.actions[index]
        if action.guard is not None and self._is_known(action.guard) and not self._sizes.get(action.guard):
            return True
        return any(
            name not in action.optional and self._is_known(artifact) and artifact not in self._sizes
            for name, artifact in action.inputs
            if artifact in self._producer
        )

    def _is_known(self, artifact: Artifact) -> bool:
        producer = self._producer.get(artifact)
        return producer is not None and self._state[producer] in _FINAL

    def _producers_of(self, action: Action) -> set[int]:
        artifacts: Iterable[Artifact] = [artifact for _, artifact in action.inputs]
        if action.guard is not None:
            artifacts = [*artifacts, action.guard]
        return {self._producer[artifact] for artifact in artifacts if artifact in self._producer}

    def _find_producers(self) -> dict[Artifact, int]:
        producer: dict[Artifact, int] = {}
        for index, action in enumerate(self.actions):
            for _, artifact in action.outputs:
                if artifact in producer:
                    raise ValueError(f"two actions make {artifact}")
                producer[artifact] = index
        return producer
