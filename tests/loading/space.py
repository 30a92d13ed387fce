"""A workspace in a temporary folder: write files, load targets, read errors. Knows no test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tilebuild.action import Tool
from tilebuild.analysis.analyzer import Analysis, analyze
from tilebuild.diagnostics import DiagnosticError
from tilebuild.loading.loader import LoadResult, load
from tilebuild.query.evaluate import evaluate
from tilebuild.query.expression import parse, patterns
from tilebuild.query.output import render
from tilebuild.workspace import open_workspace


class Space:
    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.write("tilebuild.toml", "")

    def write(self, path: str, text: str = "") -> Path:
        """Writes a file, indented as the test indents it."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def write_all(self, files: Mapping[str, str]) -> None:
        for path, text in files.items():
            self.write(path, text)

    def load(self, *patterns: str, cwd: str = "", manual: bool = False) -> LoadResult:
        workspace, settings = open_workspace(self.root, environ={})
        return load(workspace, settings, patterns or ["//..."], cwd, manual=manual)

    def roots(self, *patterns: str, cwd: str = "", manual: bool = False) -> list[str]:
        return [str(label) for label in self.load(*patterns, cwd=cwd, manual=manual).roots]

    def errors(self, *patterns: str, cwd: str = "") -> str:
        """All errors of loading and analysing, as a person sees them."""
        try:
            self.analyze(*patterns, cwd=cwd)
        except DiagnosticError as error:
            return "\n".join(d.render().replace(f"{self.root}/", "") for d in error.diagnostics)
        return ""

    def analyze(self, *patterns: str, cwd: str = "") -> Analysis:
        _, settings = open_workspace(self.root, environ={})
        loaded = self.load(*patterns, cwd=cwd)
        return analyze(loaded.graph, loaded.roots, settings, tool)

    def query(self, text: str, output: str = "label") -> str:
        expression = parse(text)
        graph = self.load(*patterns(expression), manual=True).graph
        return render(evaluate(expression, graph), graph, output)


def tool(name: str) -> Tool:
    """The tools that tests know."""
    if name not in ("sh", "check_size"):
        raise KeyError(name)
    return Tool(name, digest=name)
