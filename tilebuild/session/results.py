"""What came of a plan: per target its verdict, and in words why it is not good. Runs nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilebuild.action import Artifact
from tilebuild.cache.disk import DiskStore
from tilebuild.diagnostics import Diagnostic
from tilebuild.events import Outcome, Status
from tilebuild.execution.executor import Execution
from tilebuild.label import Label
from tilebuild.port import STYLES
from tilebuild.report import TargetResult
from tilebuild.session.plan import Plan

#: An action that ended so has all that it needs.
_SOUND = frozenset({Status.RAN, Status.HIT, Status.SKIPPED, Status.WOULD_RUN, Status.MAY_RUN})


def results(plan: Plan, execution: Execution, store: DiskStore) -> tuple[TargetResult, ...]:
    """How each target of the plan ended."""
    reader = _Reader(plan, execution, store)
    return tuple(reader.result(label) for label in plan.goals)


@dataclass(frozen=True)
class _Reader:
    plan: Plan
    execution: Execution
    store: DiskStore

    def result(self, label: Label) -> TargetResult:
        target = self.plan.loaded.graph[label]
        files = self.plan.goals[label]
        last = [self.execution.outcome_of(action) for action in self.plan.makers(files)]
        verdict = self._verdict(label, files)
        problem = self._problem(files, last) or (
            _failed_gate(verdict, self.plan.request.style) if verdict else ""
        )
        return TargetResult(
            label=str(label),
            kind=target.kind.removesuffix(" rule"),
            ok=not problem,
            files=tuple(artifact.path for artifact in files if artifact in self.execution.produced),
            verdict=verdict,
            problem=problem,
            diagnostics=self._words(verdict, files) if verdict and problem else (),
            test=target.test,
            operator=str(target.parent) if target.derived is not None else "",
            cached=all(outcome.status in (Status.HIT, Status.SKIPPED) for outcome in last),
        )

    def _problem(self, files: Sequence[Artifact], last: Sequence[Outcome]) -> str:
        """In words the first action that did not end well and that the files need, however far behind."""
        if all(outcome.status in _SOUND for outcome in last):
            return ""
        needed = self.plan.analysis.needed_for(files)
        return _first_failure([self.execution.outcome_of(action) for action in needed])

    def _verdict(self, label: Label, files: Sequence[Artifact]) -> Mapping[str, Any] | None:
        """The content of the last verdict file among the files, which says most; if the rule has one."""
        named = self.plan.providers(label).get("Verdict")
        verdicts = [a for a in files if a == named or a.path.endswith("/verdict.json")]
        data = self._content(verdicts[-1]) if verdicts else None
        return dict(json.loads(data)) if data is not None else None

    def _words(self, verdict: Mapping[str, Any], files: Sequence[Artifact]) -> tuple[Diagnostic, ...]:
        """What a negative verdict has to say, and where the two sides differ if it is about that."""
        items = list(verdict.get("diagnostics", ()))
        states = {gate["gate"]: gate["state"] for gate in verdict.get("gates", ())}
        for artifact in files if states.get("evidence") == "failed" else ():
            if artifact.path.endswith(".differences.json"):
                items += json.loads(self._content(artifact) or b"[]")
        return tuple(Diagnostic.from_json(item) for item in items)

    def _content(self, artifact: Artifact) -> bytes | None:
        made = self.execution.produced.get(artifact)
        return self.store.read(made.digest) if made is not None else None


def _first_failure(needed: Sequence[Outcome]) -> str:
    for status, words in ((Status.FAILED, "failed"), (Status.CANCELLED, "was not built")):
        for outcome in needed:
            if outcome.status is status:
                action = outcome.action
                text = " ".join(part for part in (action.mnemonic, action.detail, words) if part)
                facts = [diagnostic.fact.partition("\n")[0] for diagnostic in outcome.diagnostics[:1]]
                return ": ".join([text, *facts])
    return ""


def _failed_gate(verdict: Mapping[str, Any], style: str) -> str:
    for gate in verdict.get("gates", ()):
        if gate["state"] in ("failed", "python-fails"):
            return f"gate {gate['gate']}: {gate['state']}" + (f": {gate['why']}" if gate["why"] else "")
    if not verdict.get("ok", True):
        return "its verdict is negative"
    for kernel in verdict.get("kernels", ()) if style else ():
        if STYLES.index(kernel["style"]) > STYLES.index(style):
            return f"{kernel['kernel']} is {kernel['style']}, asked for was {style} or safer"
    return ""
