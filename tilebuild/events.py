"""What happens during a build, as data. Knows neither who reports it nor how it is shown.

`to_json` of each event is one line of `--json`; `EVENT_VERSION` changes when a field changes its meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from tilebuild.action import Action
from tilebuild.cache.digest import Digest
from tilebuild.diagnostics import Diagnostic

EVENT_VERSION = 1


class Status(Enum):
    """How an action ended."""

    RAN = "ran"
    HIT = "hit"  # its result was in the cache
    SKIPPED = "skipped"  # its guard or an input is absent: it is not needed
    FAILED = "failed"
    BLOCKED = "blocked"  # an action that it needs failed
    CANCELLED = "cancelled"  # the build stopped before
    WOULD_RUN = "would run"  # dry run: not in the cache
    MAY_RUN = "may run"  # dry run: depends on what an action that would run makes


@dataclass(frozen=True)
class Fact:
    """One thing that enters an action's key: `kind` and `name` say what, `value` is compared, `origin`
    helps people.
    """

    kind: str
    name: str
    value: str
    origin: str = ""


@dataclass(frozen=True)
class Outcome:
    """An action and its end. `seconds` is what it took, or for a hit what it took when it ran.

    `fault` is the exit code of a build for whose failure the machine is to blame, see `tilebuild.faults`.
    """

    action: Action
    status: Status
    key: Digest | None = None
    seconds: float = 0.0
    facts: tuple[Fact, ...] = ()
    why: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    fault: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "label": self.action.label,
            "mnemonic": self.action.mnemonic,
            "detail": self.action.detail,
            "status": self.status.value,
            "key": str(self.key) if self.key else "",
            "seconds": round(self.seconds, 6),
            "why": list(self.why),
            "diagnostics": [d.to_json() for d in self.diagnostics],
        }


@dataclass(frozen=True)
class PhaseStarted:
    """A part of the build that a person may have to wait for: loading, waiting for another build."""

    text: str

    def to_json(self) -> dict[str, Any]:
        return _event("phase", text=self.text)


@dataclass(frozen=True)
class ActionStarted:
    action: Action

    def to_json(self) -> dict[str, Any]:
        action = self.action
        return _event("started", label=action.label, mnemonic=action.mnemonic, detail=action.detail)


@dataclass(frozen=True)
class ActionFinished:
    outcome: Outcome

    def to_json(self) -> dict[str, Any]:
        return _event("finished", **self.outcome.to_json())


@dataclass(frozen=True)
class RunningAction:
    """`last_line` is the end of what it has written to standard error so far."""

    action: Action
    seconds: float
    last_line: str = ""


@dataclass(frozen=True)
class Progress:
    """Comes several times a second while actions run; not part of `--json`."""

    done: int
    total: int
    running: tuple[RunningAction, ...]


Event = PhaseStarted | ActionStarted | ActionFinished | Progress


def _event(name: str, **fields: Any) -> dict[str, Any]:
    return {"version": EVENT_VERSION, "event": name, **fields}
