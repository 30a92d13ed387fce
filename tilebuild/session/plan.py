"""Which files and actions a request comes to. Runs nothing, and does not know what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilebuild.action import Action, Artifact
from tilebuild.analysis.analyzer import Analysis
from tilebuild.diagnostics import Diagnostic
from tilebuild.label import Label
from tilebuild.loading.loader import LoadResult
from tilebuild.rule import Providers
from tilebuild.session.request import Request

_BENCHMARK = "tile_benchmark rule"


@dataclass(frozen=True)
class Plan:
    """What a request comes to: for each target the files that are wanted, and the actions behind them."""

    request: Request
    loaded: LoadResult
    analysis: Analysis
    goals: Mapping[Label, Sequence[Artifact]]

    @cached_property
    def wanted(self) -> tuple[Artifact, ...]:
        return tuple(artifact for files in self.goals.values() for artifact in files)

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        return self.analysis.needed_for(self.wanted)

    @cached_property
    def sources(self) -> frozenset[Artifact]:
        """The files of the workspace that actions read, or that are asked for themselves."""
        read = {a for action in self.actions for _, a in action.inputs if a.source}
        return frozenset(read | {artifact for artifact in self.wanted if artifact.source})

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """What kept targets out of the plan, where the request goes on without them."""
        return (*self.loaded.problems, *self.analysis.problems)

    def providers(self, label: Label) -> Providers:
        return self.analysis.targets[label].providers

    def makers(self, files: Sequence[Artifact]) -> list[Action]:
        """The actions that make the files themselves, without those behind them."""
        producer = self.analysis.producer
        return [producer[artifact] for artifact in files if artifact in producer]


def roots_of(loaded: LoadResult, verb: str) -> tuple[Label, ...]:
    """The targets that a command is about: those that were named, their tests, their benchmarks."""
    if verb == "build":
        return loaded.roots
    tests = tuple(loaded.graph.tests(loaded.roots))
    return tests if verb == "test" else tuple(t for t in tests if loaded.graph[t].kind == _BENCHMARK)


def goals_of(providers: Providers, request: Request) -> tuple[Artifact, ...]:
    """The files that a request wants of a target: all, or those of the level of proof that was asked for."""
    levels = providers.get("Levels") or {}
    level = {"build": request.verify, "bench": "bench"}.get(request.verb, "")
    return tuple(levels.get(level, providers.files))
