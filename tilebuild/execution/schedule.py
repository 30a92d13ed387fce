"""Decides which action may run next. Knows nothing of files, keys, processes or caches.

    WANTED ──► READY ──► QUEUED ──► RUNNING ──► DONE      its result is there
       │         │                     └──────► FAILED
       │         └─► DONE                                 its result was found, nothing ran
       ├─► SKIPPED                                        its guard or an input is absent
       └─► BLOCKED                                        an action that it needs failed

Every transition passes `_set`; `_end` wakes whoever waited.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
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
        self._resolved: deque[int] = deque()
        self.unfinished = len(actions)
        producer = self._find_producers()
        self._waits_for: list[set[int]] = [_producers(action, producer) for action in actions]
        self._waiting: list[list[int]] = [[] for _ in actions]
        for index, producers in enumerate(self._waits_for):
            for needed in producers:
                self._waiting[needed].append(index)
            if not producers:
                self._make_ready(index)

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
        self._end(index, State.DONE)

    def failed(self, index: int) -> None:
        self._end(index, State.FAILED)

    def pop_resolved(self) -> int | None:
        """The next action that became SKIPPED or BLOCKED, each once."""
        return self._resolved.popleft() if self._resolved else None

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
        self.unfinished -= state in _FINAL
        if state in (State.SKIPPED, State.BLOCKED):
            self._resolved.append(index)

    def _end(self, index: int, state: State) -> None:
        """Sets a final state, and those that follow from it; without recursion, since chains can be long."""
        self._set(index, state)
        ended = [index]
        for resolved in ended:
            for waiting in self._waiting[resolved]:
                self._waits_for[waiting].discard(resolved)
                if self._state[waiting] is State.WANTED:
                    self._reconsider(waiting, resolved)
                    if self._state[waiting] in _FINAL:
                        ended.append(waiting)

    def _reconsider(self, index: int, resolved: int) -> None:
        """An action that waits, after one that it waits for has ended."""
        if self._state[resolved] in (State.FAILED, State.BLOCKED):
            self._set(index, State.BLOCKED)
        elif self._lacks(index, resolved):
            self._set(index, State.SKIPPED)
        elif not self._waits_for[index]:
            self._make_ready(index)

    def _make_ready(self, index: int) -> None:
        self._set(index, State.READY)
        heapq.heappush(self._ready, index)

    def _lacks(self, index: int, resolved: int) -> bool:
        """Whether something that `resolved` should have made keeps the action from being needed."""
        action = self.actions[index]
        made = {artifact for _, artifact in self.actions[resolved].outputs}
        if action.guard in made and not self._sizes.get(action.guard):
            return True
        if self._state[resolved] is State.DONE:
            return False
        return any(artifact in made and name not in action.optional for name, artifact in action.inputs)

    def _find_producers(self) -> dict[Artifact, int]:
        producer: dict[Artifact, int] = {}
        for index, action in enumerate(self.actions):
            for _, artifact in action.outputs:
                if artifact in producer:
                    raise ValueError(f"two actions make {artifact}")
                producer[artifact] = index
        return producer


def _producers(action: Action, producer: Mapping[Artifact, int]) -> set[int]:
    artifacts = [artifact for _, artifact in action.inputs]
    if action.guard is not None:
        artifacts.append(action.guard)
    return {producer[artifact] for artifact in artifacts if artifact in producer}
