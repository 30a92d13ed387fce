"""From the target graph to actions: runs each rule once, in dependency order.

Pure: reads no file and starts nothing.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tilebuild.action import Action, Artifact, Tool
from tilebuild.analysis.visibility import violations
from tilebuild.analysis.wiring import order, producers
from tilebuild.call_site import CallSite, Frame
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError, Span
from tilebuild.graph import topological
from tilebuild.label import Label
from tilebuild.rule import Dependency, Providers, Rule, RuleContext
from tilebuild.settings import Settings
from tilebuild.target import GENERATED_FILE, SOURCE_FILE, Target, TargetGraph


@dataclass(frozen=True)
class ConfiguredTarget:
    """A target with what its rule answered; `outputs` are the files it declared, by the name it gave them."""

    target: Target
    providers: Providers
    actions: tuple[Action, ...] = ()
    outputs: Mapping[str, Artifact] | None = None


@dataclass(frozen=True)
class Analysis:
    """All targets that were asked for, what they depend on, and every action, each after those it needs."""

    targets: Mapping[Label, ConfiguredTarget]
    actions: tuple[Action, ...]
    producer: Mapping[Artifact, Action]
    problems: tuple[Diagnostic, ...] = ()

    def needed(self, labels: Iterable[Label]) -> tuple[Action, ...]:
        """The actions behind the files of some targets, each after those it needs."""
        return self.needed_for(f for label in labels for f in self.targets[label].providers.files)

    def needed_for(self, artifacts: Iterable[Artifact]) -> tuple[Action, ...]:
        """The actions behind some files, each after those it needs."""
        return order([self.producer[a] for a in artifacts if a in self.producer], self.producer)


def analyze(
    graph: TargetGraph,
    roots: Sequence[Label],
    settings: Settings,
    tools: Callable[[str], Tool],
    *,
    keep_going: bool = False,
) -> Analysis:
    """Runs the rules of everything that `roots` depend on.

    Raises DiagnosticError with everything that is wrong; with `keep_going` that is in `problems` instead, and
    what it touches is missing from `targets`. `tools` gives a tool by name and raises KeyError for a name it
    does not know. The graph must be acyclic below the roots.
    """
    problems: list[Diagnostic] = []
    done: dict[Label, ConfiguredTarget] = {}
    for label in topological(roots, graph.successors):
        hidden = list(violations(graph, graph[label]))
        problems += hidden
        if not hidden and all(dep in done for dep in graph[label].deps):
            try:
                done[label] = _configure(graph, graph[label], done, settings, tools)
            except DiagnosticError as error:
                problems += error.diagnostics
    actions = [action for configured in done.values() for action in configured.actions]
    try:
        producer = producers(actions, graph)
        ordered = order(actions, producer)
    except DiagnosticError as error:
        # How actions fit together concerns all targets at once: there is nothing sound to go on with.
        raise DiagnosticError(*dict.fromkeys([*problems, *error.diagnostics])) from error
    if problems and not keep_going:
        raise DiagnosticError(*dict.fromkeys(problems))
    return Analysis(done, ordered, producer, tuple(dict.fromkeys(problems)))


def run_rule(
    rule: Rule,
    label: Label,
    attributes: Mapping[str, object],
    dependencies: Mapping[Label, Dependency] | None = None,
    settings: Settings | None = None,
    tools: Callable[[str], Tool] | None = None,
    external: tuple[Artifact, ...] = (),
) -> tuple[Providers, list[Action]]:
    """One rule by itself, as its test sees it: attributes in, providers and actions out."""
    ctx = RuleContext(
        label=label,
        attr=rule.attributes.model_validate(attributes, context={"package": label.package}),
        settings=settings or Settings(),
        call_site=CallSite(rule.name, (Frame(f"{label.package}/BUILD", 1, "<module>", ""),)),
        dependencies=dependencies or {},
        tools=tools or (lambda name: Tool(name, digest=name)),
        external=external,
    )
    return rule.function(ctx), ctx.actions


def _configure(
    graph: TargetGraph,
    target: Target,
    done: Mapping[Label, ConfiguredTarget],
    settings: Settings,
    tools: Callable[[str], Tool],
) -> ConfiguredTarget:
    if target.kind == SOURCE_FILE:
        assert target.artifact is not None
        return ConfiguredTarget(target, Providers([target.artifact]))
    if target.kind == GENERATED_FILE:
        assert target.parent is not None
        return ConfiguredTarget(target, Providers([_generated(target, done[target.parent])]))
    if target.rule is None:  # a package group
        return ConfiguredTarget(target, Providers())
    assert target.attr is not None
    ctx = RuleContext(
        label=target.label,
        attr=target.attr,
        settings=settings,
        call_site=target.call_site,
        dependencies={
            dep: Dependency(done[dep].target.kind, done[dep].providers, done[dep].target.content)
            for dep in target.deps
        },
        tools=tools,
        external=target.external,
        parent=done[target.parent].providers if target.derived and target.parent else None,
    )
    function = target.derived.function if target.derived else target.rule.function
    try:
        providers = function(ctx)
    except DiagnosticError:
        raise
    except Exception as error:
        raise DiagnosticError(_rule_failed(target, error)) from error
    if not isinstance(providers, Providers):
        raise DiagnosticError(
            target.call_site.diagnostic(f"rule {target.rule.name} returned {providers!r}, not Providers")
        )
    return ConfiguredTarget(target, providers, tuple(ctx.actions), dict(ctx.outputs))


def _generated(target: Target, parent: ConfiguredTarget) -> Artifact:
    artifact = (parent.outputs or {}).get(target.label.name)
    if artifact is None:
        fact = (
            f"{parent.target.label} lists the output '{target.label.name}', but its rule does not declare it"
        )
        raise DiagnosticError(target.call_site.diagnostic(fact))
    return artifact


def _rule_failed(target: Target, error: Exception) -> Diagnostic:
    """An exception of the rule's own code: where it was raised, and for which target."""
    assert target.rule is not None
    frames = traceback.extract_tb(error.__traceback__)
    code = (target.derived or target.rule).function.__code__
    frame = next((f for f in reversed(frames) if f.filename == code.co_filename), frames[-1])
    fact = f"rule {target.rule.name} failed for {target.label}: {type(error).__name__}: {error}"
    span = Span(frame.filename, frame.lineno or 0)
    # Rule files of the workspace have relative paths; any other is ours.
    blame = Blame.TILEBUILD if code.co_filename.startswith("/") else Blame.BUILD_FILE
    return Diagnostic(fact, blame, span, frame.line or "", notes=(target.call_site.note("declared here"),))
