"""The answer to a query as text, one function for each format. Knows the target graph and no terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError, did_you_mean
from tilebuild.label import Label
from tilebuild.query.evaluate import Result
from tilebuild.query.functions import attributes
from tilebuild.target import Target, TargetGraph

#: A format: the answer, the graph, and the absolute path of the workspace, to the lines of the text.
Format = Callable[[Result, TargetGraph, str], Iterator[str]]


def render(result: Result, graph: TargetGraph, output: str = "label", root: str = "") -> str:
    """The text of an answer, each line ended. Raises DiagnosticError for an unknown format."""
    if output not in FORMATS:
        help = did_you_mean(output, FORMATS) or f"formats are {', '.join(FORMATS)}"
        raise DiagnosticError(
            Diagnostic(f"there is no output format '{output}'", Blame.BUILD_FILE, help=help)
        )
    return "".join(line + "\n" for line in FORMATS[output](result, graph, root))


def _label(result: Result, graph: TargetGraph, root: str) -> Iterator[str]:
    yield from map(str, result.labels)


def _label_kind(result: Result, graph: TargetGraph, root: str) -> Iterator[str]:
    for label in result.labels:
        yield f"{_kind(graph, label)} {label}"


def _location(result: Result, graph: TargetGraph, root: str) -> Iterator[str]:
    for label in result.labels:
        target = graph.targets.get(label)
        place = f"{_place(target, root)}: " if target else ""
        yield f"{place}{_kind(graph, label)} {label}"


def _package(result: Result, graph: TargetGraph, root: str) -> Iterator[str]:
    yield from sorted({label.package for label in result.labels})


def _build(result: Result, graph: TargetGraph, root: str) -> Iterator[str]:
    """Each rule's call as it was evaluated: macros expanded, labels absolute."""
    for label in result.labels:
        target = graph.targets.get(label)
        if target is None or target.rule is None or target.derived is not None:
            continue
        yield f"# {_place(target, root)}"
        yield f"{target.rule.name}("
        yield f"  name = {_starlark(label.name)},"
        for name, value in attributes(target).items():
            if name in target.attributes or (name == "tags" and value):
                yield f"  {name} = {_starlark(value)},"
        if len(target.call_site.frames) > 1:
            yield f"  generator_function = {_starlark(target.call_site.frames[1].function)},"
            yield f"  generator_location = {_starlark(str(target.span))},"
        yield ")"
        yield ""


def _graph(result: Result, graph: TargetGraph, root: str) -> Iterator[str]:
    yield "digraph mygraph {"
    yield "  node [shape=box];"
    for label, below in _edges(result, graph):
        yield f'  "{label}"'
        for other in below:
            yield f'  "{label}" -> "{other}"'
    yield "}"


def _mermaid(result: Result, graph: TargetGraph, root: str) -> Iterator[str]:
    names = {label: f"n{index}" for index, label in enumerate(result.labels)}
    yield "graph LR"
    for label, name in names.items():
        yield f'  {name}["{label}"]'
    for label, below in _edges(result, graph):
        for other in below:
            yield f"  {names[label]} --> {names[other]}"


def _json(result: Result, graph: TargetGraph, root: str) -> Iterator[str]:
    rows = [_row(graph, label) for label in result.labels]
    yield json.dumps(rows, indent=2, ensure_ascii=False)


def _row(graph: TargetGraph, label: Label) -> dict[str, Any]:
    target = graph.targets.get(label)
    if target is None:
        return {"label": str(label), "kind": _kind(graph, label)}
    row: dict[str, Any] = {
        "label": str(label),
        "kind": target.kind,
        "location": str(target.span),
        "deps": [str(dep) for dep in target.deps],
    }
    if target.is_rule:
        row["attributes"] = {name: _plain(value) for name, value in attributes(target).items()}
        row["test"] = target.test
    if target.parent is not None:
        row["declared_by"] = str(target.parent)
    return row


def _edges(result: Result, graph: TargetGraph) -> Iterator[tuple[Label, list[Label]]]:
    inside = set(result.labels)
    for label in result.labels:
        yield label, [dep for dep in graph.successors(label) if dep in inside]


def _kind(graph: TargetGraph, label: Label) -> str:
    target = graph.targets.get(label)
    return target.kind if target else "source file"  # a loaded file that nothing else names


def _place(target: Target, root: str) -> str:
    return f"{root}/{target.span}" if root else str(target.span)


def _plain(value: Any) -> Any:
    """A value as JSON has it, labels as text."""
    if isinstance(value, Label):
        return str(value)
    if isinstance(value, BaseModel):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value


def _starlark(value: Any) -> str:
    """A value as a BUILD file has it."""
    plain = _plain(value)
    if isinstance(plain, str):
        return json.dumps(plain, ensure_ascii=False)
    if isinstance(plain, dict):
        return "{" + ", ".join(f"{_starlark(k)}: {_starlark(v)}" for k, v in plain.items()) + "}"
    if isinstance(plain, list):
        return "[" + ", ".join(_starlark(item) for item in plain) + "]"
    return repr(plain)


#: Every format by its name.
FORMATS: Mapping[str, Format] = {
    "label": _label,
    "label_kind": _label_kind,
    "build": _build,
    "graph": _graph,
    "json": _json,
    "location": _location,
    "mermaid": _mermaid,
    "package": _package,
}
