"""What came of a command: per target, and per action. Knows neither how it was found out nor how it is
shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from tilebuild.diagnostics import Diagnostic
from tilebuild.events import EVENT_VERSION, Outcome, Status


class ExitCode(IntEnum):
    """Bazel's numbers."""

    OK = 0
    BUILD_FAILED = 1
    BAD_COMMAND_LINE = 2
    TESTS_FAILED = 3
    NO_TESTS = 4
    ANALYSIS_FAILED = 7
    INTERRUPTED = 8
    LOCK_HELD = 9
    OUT_OF_MEMORY = 33
    LOCAL_ENVIRONMENT = 36
    INTERNAL_ERROR = 37


@dataclass(frozen=True)
class Message:
    """A diagnostic, and the names of all actions or targets that have it, if any has."""

    diagnostic: Diagnostic
    actions: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()

    def render(self) -> str:
        """The text of the diagnostic, and after it whose it is."""
        text = self.diagnostic.render()
        if not (names := self.actions or self.targets):
            return text
        more = len(names) - 1
        noun = ("action" if self.actions else "target") + ("s" if more > 1 else "")
        return f"{text}\n  in: {names[0]}" + (f", and {more} more {noun}" if more else "")

    def to_json(self) -> dict[str, Any]:
        owners = {"actions": list(self.actions), "targets": list(self.targets)}
        return self.diagnostic.to_json() | owners


@dataclass(frozen=True)
class TargetResult:
    """A requested target. `problem` says in one line why it is not `ok`, `diagnostics` at length.

    `verdict` is the content of its verdict file, of those rules that have one; `files` lie in the output
    folder. `operator` is the target that declares it, of derived tests.
    """

    label: str
    kind: str
    ok: bool
    files: tuple[str, ...] = ()
    verdict: Mapping[str, Any] | None = None
    problem: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    test: bool = False
    cached: bool = False
    operator: str = ""

    @property
    def pending(self) -> tuple[Mapping[str, Any], ...]:
        """The cases without a verdict that keep a gate open, as the verdict lists them."""
        return tuple((self.verdict or {}).get("pending", ()))

    def to_json(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "kind": self.kind,
            "ok": self.ok,
            "files": list(self.files),
            "verdict": self.verdict,
            "problem": self.problem,
            "cached": self.cached,
        }


@dataclass(frozen=True)
class Report:
    """One `build` or `test`. `dry_run` reports say what would happen.

    `problems` kept targets from being looked at, in a build that went on without them. `sandbox` is what kept
    the actions that ran to their places.
    """

    verb: str
    targets: tuple[TargetResult, ...]
    outcomes: tuple[Outcome, ...]
    seconds: float
    interrupted: bool = False
    dry_run: bool = False
    problems: tuple[Diagnostic, ...] = ()
    printed: tuple[str, ...] = ()
    output: str = ""
    allow_pending: bool = False
    sandbox: str = ""

    def counts(self) -> Mapping[Status, int]:
        return Counter(outcome.status for outcome in self.outcomes)

    @property
    def messages(self) -> tuple[Message, ...]:
        """Everything that a person must read, each once."""
        actions: dict[Diagnostic, dict[str, None]] = {problem: {} for problem in self.problems}
        for outcome in self.outcomes:
            for diagnostic in outcome.diagnostics:
                actions.setdefault(diagnostic, {})[outcome.action.name] = None
        targets: dict[Diagnostic, dict[str, None]] = {}
        for target in self.shown:
            for diagnostic in target.diagnostics:
                targets.setdefault(diagnostic, {})[target.label] = None
        return tuple(
            Message(diagnostic, tuple(actions.get(diagnostic, ())), tuple(targets.get(diagnostic, ())))
            for diagnostic in {**actions, **targets}
        )

    @property
    def shown(self) -> tuple[TargetResult, ...]:
        """The targets with something to say: an operator that was built says all that its tests could."""
        if self.verb != "build":
            return self.targets
        ends = {target.label: target.ok for target in self.targets}
        return tuple(t for t in self.targets if ends.get(t.operator) not in (t.ok, False))

    @property
    def _is_pending(self) -> bool:
        """Whether a gate that was asked for is still open: that fails tests and benchmarks."""
        return self.verb != "build" and not self.allow_pending and any(t.pending for t in self.targets)

    @property
    def exit_code(self) -> ExitCode:
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if self.problems:
            return ExitCode.BUILD_FAILED
        if self.verb != "build" and not self.targets:
            return ExitCode.NO_TESTS
        if fault := min((outcome.fault for outcome in self.outcomes if outcome.fault), default=0):
            return ExitCode(fault)
        failed = [target for target in self.targets if not target.ok]
        if self.dry_run or not (failed or self._is_pending):
            return ExitCode.OK
        if self.verb != "build" and all(target.verdict is not None for target in failed):
            return ExitCode.TESTS_FAILED
        return ExitCode.BUILD_FAILED

    def to_json(self) -> dict[str, Any]:
        return {
            "version": EVENT_VERSION,
            "event": "report",
            "verb": self.verb,
            "exit_code": int(self.exit_code),
            "seconds": round(self.seconds, 3),
            "sandbox": self.sandbox,
            "actions": {status.value: count for status, count in sorted(self.counts().items(), key=str)},
            "targets": [target.to_json() for target in self.targets],
            "diagnostics": [message.to_json() for message in self.messages],
        }
