"""The functions of the query language, one row each. Knows the target graph, and neither text nor files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pydantic import BaseModel

from tilebuild.graph import reachable, reverse, shortest_path
from tilebuild.label import Label
from tilebuild.rule import labels_in
from tilebuild.target import Target, TargetGraph, matches_tags

#: Sets of targets keep the order in which they were found; only somepath's means something.
Targets = tuple[Label, ...]


class Parameter(Enum):
    EXPRESSION = "x"
    WORD = "word"
    INTEGER = "n"


class QueryError(Exception):
    """A function cannot answer."""


@dataclass(frozen=True)
class Function:
    """`apply` gets the graph and the evaluated arguments. The last `optional` parameters may be left out."""

    name: str
    usage: str
    parameters: tuple[Parameter, ...]
    apply: Callable[..., Targets]
    optional: int = 0
    variadic: bool = False
    ordered: bool = False  # the order of the result is part of the answer

    @property
    def required(self) -> int:
        return len(self.parameters) - self.optional


def _deps(graph: TargetGraph, targets: Targets, depth: int | None = None) -> Targets:
    return tuple(reachable(targets, graph.successors, depth))


def _rdeps(graph: TargetGraph, universe: Targets, targets: Targets, depth: int | None = None) -> Targets:
    return _users(graph, reachable(universe, graph.successors), targets, depth)


def _allrdeps(graph: TargetGraph, targets: Targets, depth: int | None = None) -> Targets:
    return _users(graph, graph.targets, targets, depth)


def _users(graph: TargetGraph, universe: Iterable[Label], targets: Targets, depth: int | None) -> Targets:
    above = reverse(universe, graph.successors)
    starts = [target for target in targets if target in above]
    return tuple(reachable(starts, lambda label: above[label], depth))


def _same_package_users(graph: TargetGraph, targets: Targets) -> Targets:
    wanted = set(targets)
    packages = {label.package for label in targets}
    return tuple(
        label
        for name in sorted(packages & graph.packages.keys())
        for label in graph.packages[name].targets
        if any(dep in wanted and dep.package == name and dep != label for dep in graph.successors(label))
    )


def _all_paths(graph: TargetGraph, starts: Targets, ends: Targets) -> Targets:
    below = reachable(starts, graph.successors)
    above = reverse(below, graph.successors)
    return tuple(reachable([end for end in ends if end in below], lambda label: above[label]))


def _some_path(graph: TargetGraph, starts: Targets, ends: Targets) -> Targets:
    return tuple(shortest_path(starts, set(ends), graph.successors))


def _some(graph: TargetGraph, targets: Targets, count: int = 1) -> Targets:
    if not targets:
        raise QueryError("some() needs at least one target, but its argument is empty")
    return targets[:count]


def _siblings(graph: TargetGraph, targets: Targets) -> Targets:
    packages = dict.fromkeys(label.package for label in targets)
    return tuple(label for name in packages for label in graph.packages[name].targets)


def _build_files(graph: TargetGraph, targets: Targets) -> Targets:
    packages = [graph.packages[name] for name in dict.fromkeys(label.package for label in targets)]
    loaded = _load_files(graph, targets)
    homes = [graph.packages[f.package] for f in loaded if not f.repo and f.package in graph.packages]
    return tuple(dict.fromkeys([*(p.build_file for p in packages), *loaded, *(p.build_file for p in homes)]))


def _load_files(graph: TargetGraph, targets: Targets) -> Targets:
    packages = dict.fromkeys(label.package for label in targets)
    return tuple(dict.fromkeys(load for name in packages for load in graph.packages[name].loads))


def _kind(graph: TargetGraph, pattern: str, targets: Targets) -> Targets:
    matcher = _compile(pattern)
    return tuple(t for t in targets if t in graph.targets and matcher.search(graph[t].kind))


def _filter(graph: TargetGraph, pattern: str, targets: Targets) -> Targets:
    matcher = _compile(pattern)
    return tuple(label for label in targets if matcher.search(str(label)))


def _attr(graph: TargetGraph, name: str, pattern: str, targets: Targets) -> Targets:
    matcher = _compile(pattern)
    found = []
    for label in targets:
        target = graph.targets.get(label)
        if target is not None and target.is_rule:
            value = attributes(target).get(name)
            if value is not None and matcher.search(attribute_text(value)):
                found.append(label)
    return tuple(found)


def _labels(graph: TargetGraph, name: str, targets: Targets) -> Targets:
    found: dict[Label, None] = {}
    for label in targets:
        value = getattr(graph[label].attr, name, None) if label in graph.targets else None
        found.update({Label(x.package, x.name, x.repo): None for _, x in labels_in(value)})
    return tuple(found)


def _tests(graph: TargetGraph, targets: Targets) -> Targets:
    return tuple(graph.tests(label for label in targets if label in graph.targets))


def _tagged(graph: TargetGraph, pattern: str, targets: Targets) -> Targets:
    wanted = [word for word in pattern.split(",") if word]
    return tuple(t for t in targets if t in graph.targets and matches_tags(graph[t].tags, wanted))


def attributes(target: Target) -> Mapping[str, Any]:
    """Every attribute of a target of a rule, defaults included, those common to all rules too."""
    values: dict[str, Any] = {"name": target.label.name}
    if target.attr is not None:
        values |= {name: getattr(target.attr, name) for name in type(target.attr).model_fields}
    return values | {"tags": sorted(target.tags), "visibility": list(target.visibility)}


def attribute_text(value: Any) -> str:
    """A value as attr() matches it: [lists], {dicts=}, booleans as 0 and 1, labels absolute."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, BaseModel):
        return attribute_text({name: getattr(value, name) for name in type(value).model_fields})
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{attribute_text(k)}={attribute_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        return "[" + ", ".join(attribute_text(item) for item in value) + "]"
    return "" if value is None else str(value)


def _compile(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise QueryError(f"'{pattern}' is no regular expression: {error}") from error


_X, _W, _N = Parameter.EXPRESSION, Parameter.WORD, Parameter.INTEGER

_ROWS = (
    Function("allpaths", "allpaths(from, to)", (_X, _X), _all_paths),
    Function("allrdeps", "allrdeps(x [, depth])", (_X, _N), _allrdeps, optional=1),
    Function("attr", "attr(name, pattern, x)", (_W, _W, _X), _attr),
    Function("buildfiles", "buildfiles(x)", (_X,), _build_files),
    Function("deps", "deps(x [, depth])", (_X, _N), _deps, optional=1),
    Function("filter", "filter(pattern, x)", (_W, _X), _filter),
    Function("kind", "kind(pattern, x)", (_W, _X), _kind),
    Function("labels", "labels(attribute, x)", (_W, _X), _labels),
    Function("loadfiles", "loadfiles(x)", (_X,), _load_files),
    Function("rdeps", "rdeps(universe, x [, depth])", (_X, _X, _N), _rdeps, optional=1),
    Function("same_pkg_direct_rdeps", "same_pkg_direct_rdeps(x)", (_X,), _same_package_users),
    Function("siblings", "siblings(x)", (_X,), _siblings),
    Function("some", "some(x [, count])", (_X, _N), _some, optional=1),
    Function("somepath", "somepath(from, to)", (_X, _X), _some_path, ordered=True),
    Function("tagged", "tagged('tag,-tag', x)", (_W, _X), _tagged),
    Function("tests", "tests(x)", (_X,), _tests),
)

#: Every function by its name.
FUNCTIONS: Mapping[str, Function] = {function.name: function for function in _ROWS}
