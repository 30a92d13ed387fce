"""What was true of each action the last time, to say what changed since. Knows nothing of how actions run.

One JSON file per target, so that a build of one target reads and writes what concerns it. Losing it costs
explanations only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tilebuild.action import Action
from tilebuild.cache.sealed import read_sealed, replace_file, write_sealed
from tilebuild.events import Fact, Outcome, Status

_VERSION = 1
_FINISHED = frozenset({Status.RAN, Status.HIT, Status.FAILED})


@dataclass(frozen=True)
class Record:
    """The last run or hit of an action that said something new; `when` its build began."""

    mnemonic: str
    detail: str
    key: str
    status: str
    seconds: float
    when: float
    why: tuple[str, ...]
    facts: tuple[Fact, ...]

    def to_json(self) -> dict[str, Any]:
        facts = [[fact.kind, fact.name, fact.value, fact.origin] for fact in self.facts]
        return {**self.__dict__, "facts": facts}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Record:
        facts = tuple(Fact(*row) for row in data["facts"])
        return Record(**{**data, "why": tuple(data["why"]), "facts": facts})


class History:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._records: dict[str, dict[str, Record]] = {}
        self._changed: set[str] = set()

    def last(self, action: Action) -> Record | None:
        return self.of_target(action.label).get(identity(action))

    def of_target(self, label: str) -> dict[str, Record]:
        if label not in self._records:
            self._records[label] = self._load(label)
        return self._records[label]

    def record(self, outcome: Outcome, when: float) -> None:
        """Remembers an outcome that says something new about its action."""
        last = self.last(outcome.action)
        if outcome.status not in _FINISHED or outcome.key is None:
            return
        if last is not None and outcome.status is Status.HIT and last.key == str(outcome.key):
            return
        action = outcome.action
        self.of_target(action.label)[identity(action)] = Record(
            mnemonic=action.mnemonic,
            detail=action.detail,
            key=str(outcome.key),
            status=outcome.status.value,
            seconds=outcome.seconds,
            when=when,
            why=outcome.why,
            facts=outcome.facts,
        )
        self._changed.add(action.label)

    def save(self) -> None:
        if self._changed:
            self._folder.mkdir(parents=True, exist_ok=True)
        for label in sorted(self._changed):
            records = {name: record.to_json() for name, record in self._records[label].items()}
            write_sealed(self._path(label), {"version": _VERSION, "records": records})
        self._changed.clear()

    def _load(self, label: str) -> dict[str, Record]:
        data = read_sealed(self._path(label))
        if data is None or data["version"] != _VERSION:
            return {}
        return {name: Record.from_json(record) for name, record in data["records"].items()}

    def _path(self, label: str) -> Path:
        return self._folder / f"{quote(label, safe='')}.json"


def identity(action: Action) -> str:
    """What makes an action of one build and of the next the same one: the first file it makes."""
    return action.outputs[0][1].path


def write_build_log(file: Path, outcomes: Sequence[Outcome]) -> None:
    """One line of JSON per action of the last build."""
    replace_file(file, "".join(json.dumps(outcome.to_json()) + "\n" for outcome in outcomes).encode())
