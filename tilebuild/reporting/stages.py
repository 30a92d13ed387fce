"""What a watch says of one build: a line per stage, then a line per target. Knows no file that was saved.

PythonIr ×3 0.05 s
//kernels:softmax same-machine-code sm_90 sm_100, cpu test 6 passed (0.9 s)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from tilebuild.action import Action, Artifact
from tilebuild.events import ActionFinished, Event, Outcome, Status
from tilebuild.report import Report, TargetResult
from tilebuild.reporting.lines import LineReporter
from tilebuild.reporting.text import Style, counted, seconds

_WORKED = frozenset({Status.RAN, Status.FAILED})


class Stages:
    """One line for all actions of a mnemonic, when the last of them has ended; the time is the sum of theirs.

    What waits for a guard is a later stage: the next rung's. What was cached is not mentioned.
    """

    def __init__(self, stream: TextIO, style: Style) -> None:
        self._stream = stream
        self._style = style
        self._patience = LineReporter(stream)
        self.begin(())

    def begin(self, actions: Sequence[Action]) -> None:
        """These are the actions of the build that follows."""
        made = {artifact for action in actions for _, artifact in action.outputs}
        self._guarded: dict[Artifact, list[str]] = {}
        self._open: Counter[str] = Counter()
        self._ended: dict[str, list[Outcome]] = {}
        for action in actions:
            if action.guard in made:
                self._guarded.setdefault(action.guard, []).append(action.mnemonic)
            else:
                self._open[action.mnemonic] += 1

    def __call__(self, event: Event) -> None:
        if isinstance(event, ActionFinished):
            self._finished(event.outcome)
        else:
            self._patience(event)

    def close(self) -> None:
        """Says what is left of a build that stopped half-way."""
        for mnemonic in list(self._ended):
            self._say(mnemonic)

    def _finished(self, outcome: Outcome) -> None:
        action = outcome.action
        if outcome.status in _WORKED:
            self._ended.setdefault(action.mnemonic, []).append(outcome)
        self._open[action.mnemonic] -= 1
        if self._open[action.mnemonic] == 0 and action.mnemonic in self._ended:
            self._say(action.mnemonic)
        for _, artifact in action.outputs:
            self._open.update(self._guarded.pop(artifact, ()))

    def _say(self, mnemonic: str) -> None:
        ended = self._ended.pop(mnemonic)
        count = f" ×{len(ended)}" if len(ended) > 1 else ""
        failed = sum(outcome.status is Status.FAILED for outcome in ended)
        problem = f" {self._style.bad(f'{failed} failed')}" if failed else ""
        spent = seconds(sum(outcome.seconds for outcome in ended))
        print(f"  {mnemonic}{count} {spent}{problem}", file=self._stream, flush=True)


class Verdicts:
    """Remembers what was said of each target, so that of many targets only news is said."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self._said: dict[str, str] = {}

    def forget(self) -> None:
        """Something else was said meanwhile: a mistake, after which each target is news again."""
        self._said.clear()

    def lines(self, report: Report, spent: float) -> list[str]:
        """A line per target that was built anew, came out differently, or is still not good."""
        after = f" ({seconds(spent)})"
        lone = len(report.shown) == 1
        lines = []
        for target in report.shown:
            text = target_line(target, self._style)
            if lone or not target.cached or not target.ok or self._said.get(target.label) != text:
                lines.append(text + after)
            self._said[target.label] = text
        failed = sum(not target.ok for target in report.shown)
        if not lone:
            of_all = f"{failed} of {counted(len(report.shown), 'target')} failed"
            all_ok = f"{counted(len(report.shown), 'target')} ok"
            lines.append((self._style.bad(of_all) if failed else self._style.good(all_ok)) + after)
        return lines


def target_line(target: TargetResult, style: Style) -> str:
    """What a target is worth, in one line."""
    label = style.strong(target.label)
    if not target.ok:
        return f"{label} {style.bad('FAILED')}: {target.problem}"
    worth = [*_evidence((target.verdict or {}).get("kernels", ())), *_tests(target.verdict or {})]
    return f"{label} {', '.join(worth) or style.good('ok')}"


def _evidence(kernels: Sequence[Mapping[str, Any]]) -> list[str]:
    """`same-machine-code sm_90 sm_100`: architectures with the same words together."""
    found: dict[str, Counter[str]] = {}
    for kernel in kernels:
        for row in kernel["evidence"].values():
            for architecture, word in row.items():
                found.setdefault(architecture, Counter())[word] += 1
    together: dict[str, list[str]] = {}
    for architecture in sorted(found, key=lambda name: (len(name), name)):
        words = found[architecture].most_common()
        text = words[0][0] if len(words) == 1 else " and ".join(f"{word} ×{count}" for word, count in words)
        together.setdefault(text, []).append(architecture)
    return [" ".join([text, *architectures]) for text, architectures in together.items()]


def _tests(verdict: Mapping[str, Any]) -> list[str]:
    test = verdict.get("cpu_test") or {}
    counts = [(test.get("passed", 0), "passed"), (test.get("failed", 0), "failed")]
    said = [f"{count} {word}" for count, word in counts if count]
    pending = [f"{gate['gate']} pending" for gate in verdict.get("gates", ()) if gate["state"] == "pending"]
    return [*(["cpu test " + " ".join(said)] if said else []), *pending]
