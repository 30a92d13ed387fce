"""A query over a target graph: which targets it names.

Pure; the graph must hold what `expression.patterns` lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError
from tilebuild.label import Label, parse_pattern
from tilebuild.query.expression import Binary, Call, Expression, Let, Union, Variable, Word
from tilebuild.query.functions import QueryError, Targets
from tilebuild.target import TargetGraph


@dataclass(frozen=True)
class Result:
    """The targets of a query: sorted, unless their order is part of the answer."""

    labels: tuple[Label, ...]
    ordered: bool = False


def evaluate(expression: Expression, graph: TargetGraph, cwd: str = "") -> Result:
    """Raises DiagnosticError where a pattern names nothing or a function cannot answer."""
    labels = _Evaluator(graph, cwd).value(expression, {})
    ordered = isinstance(expression, Call) and expression.function.ordered
    return Result(labels if ordered else tuple(sorted(labels)), ordered)


@dataclass(frozen=True)
class _Evaluator:
    graph: TargetGraph
    cwd: str

    def value(self, expression: Expression, variables: Mapping[str, Targets]) -> Targets:
        match expression:
            case Word():
                return self._word(expression)
            case Union(words=words):
                return tuple(dict.fromkeys(label for word in words for label in self._word(word)))
            case Variable(name=name):
                return variables[name]
            case Let(name=name, value=value, body=body):
                return self.value(body, {**variables, name: self.value(value, variables)})
            case Binary():
                return self._binary(expression, variables)
            case Call():
                return self._call(expression, variables)

    def _word(self, word: Word) -> Targets:
        try:
            return tuple(self.graph.expand(parse_pattern(word.text, self.cwd)))
        except DiagnosticError as error:
            placed = [Diagnostic(d.fact, d.blame, word.span, word.source, d.help) for d in error.diagnostics]
            raise DiagnosticError(*placed) from error

    def _binary(self, expression: Binary, variables: Mapping[str, Targets]) -> Targets:
        left = self.value(expression.left, variables)
        right = self.value(expression.right, variables)
        if expression.operator == "+":
            return tuple(dict.fromkeys((*left, *right)))
        other = set(right)
        keep = expression.operator == "^"
        return tuple(label for label in left if (label in other) is keep)

    def _call(self, call: Call, variables: Mapping[str, Targets]) -> Targets:
        arguments = [
            argument if isinstance(argument, str | int) else self.value(argument, variables)
            for argument in call.arguments
        ]
        try:
            return call.function.apply(self.graph, *arguments)
        except QueryError as error:
            raise DiagnosticError(Diagnostic(str(error), Blame.BUILD_FILE, call.span, call.source)) from error
