"""Actions joined by the files between them: who makes what, and in which order.

Knows no rule and no target but for errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tilebuild.action import Action, Artifact
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError
from tilebuild.graph import CycleError, topological
from tilebuild.label import Label
from tilebuild.target import TargetGraph


def producers(actions: Iterable[Action], graph: TargetGraph) -> dict[Artifact, Action]:
    """Which action makes each file. Raises DiagnosticError where two make the same, or one makes a source."""
    found: dict[Artifact, Action] = {}
    problems: list[Diagnostic] = []
    for action in actions:
        for _, artifact in action.outputs:
            if artifact.source:
                problems.append(
                    _problem(f"action {action.mnemonic} writes the source file {artifact}", action, graph)
                )
            elif artifact in found:
                other = found[artifact]
                makers = f"{action.mnemonic} of {action.label}, {other.mnemonic} of {other.label}"
                fact = f"two actions make {artifact}: {makers}"
                problems.append(_problem(fact, action, graph))
            found.setdefault(artifact, action)
    for action in actions:
        for artifact in needs(action):
            if not artifact.source and artifact not in found:
                fact = f"action {action.mnemonic} of {action.label} needs {artifact}, which no action makes"
                problems.append(_problem(fact, action, graph))
    if problems:
        raise DiagnosticError(*problems)
    return found


def needs(action: Action) -> tuple[Artifact, ...]:
    """The files that an action waits for."""
    inputs = tuple(artifact for _, artifact in action.inputs)
    return (*inputs, action.guard) if action.guard is not None else inputs


def order(actions: Sequence[Action], producer: Mapping[Artifact, Action]) -> tuple[Action, ...]:
    """The actions and all that they need, each after those. Raises DiagnosticError for a cycle."""
    # Actions are compared by identity here: two equal ones cannot both be in a build, and hashing them is
    # slow.
    by_id = {id(action): action for action in (*actions, *producer.values())}

    def below(key: int) -> list[int]:
        return [id(producer[a]) for a in needs(by_id[key]) if a in producer]

    try:
        return tuple(by_id[key] for key in topological((id(action) for action in actions), below))
    except CycleError as error:
        path = [by_id[key] for key in error.path if isinstance(key, int)]
        shown = " -> ".join(f"{action.mnemonic} of {action.label}" for action in path)
        raise DiagnosticError(Diagnostic(f"actions need each other: {shown}", Blame.BUILD_FILE)) from None


def _problem(fact: str, action: Action, graph: TargetGraph) -> Diagnostic:
    target = graph.targets.get(Label.parse(action.label))
    return target.call_site.diagnostic(fact) if target else Diagnostic(fact, Blame.BUILD_FILE)
