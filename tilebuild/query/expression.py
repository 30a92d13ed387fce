"""The text of a query as a tree. Knows the grammar and the shape of each function, and no target.

    expression := primary (("+" | "union" | "-" | "except" | "^" | "intersect") primary)*
    primary    := word | function "(" argument, … ")" | "let" name "=" expression "in" expression
                | "(" expression ")" | "set" "(" word* ")"

All operators bind equally and to the left, as in Bazel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError, Span, did_you_mean
from tilebuild.query.functions import FUNCTIONS, Function, Parameter

#: What errors call the text.
PLACE = "query"

_OPERATORS = {"+": "+", "union": "+", "-": "-", "except": "-", "^": "^", "intersect": "^"}
_KEYWORDS = frozenset({"let", "in", "set", *(word for word in _OPERATORS if word.isalpha())})
_TOKEN = re.compile(
    r"""\s*(?:(?P<sign>[(),+=^]|-(?!-))|(?P<quote>['"])(?P<quoted>[^'"]*?|(?:(?!(?P=quote)).)*)(?P=quote)
        |(?P<word>(?:@@[A-Za-z0-9*/@.\-_:$~\[\]+]+|[A-Za-z0-9/@._:$~\[\]][A-Za-z0-9*/@.\-_:$~\[\]]*))
        |(?P<bad>.))""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """`kind` is the sign or keyword itself, `word`, or `end`; columns count from 1."""

    kind: str
    text: str
    column: int
    end_column: int


@dataclass(frozen=True)
class Word:
    """A target pattern."""

    text: str
    span: Span
    source: str


@dataclass(frozen=True)
class Variable:
    name: str


@dataclass(frozen=True)
class Union:
    """`set(a b c)`."""

    words: tuple[Word, ...]


@dataclass(frozen=True)
class Binary:
    operator: str  # "+", "-" or "^"
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Let:
    name: str
    value: Expression
    body: Expression


@dataclass(frozen=True)
class Call:
    """A function with its arguments: expressions, words and numbers, as its row in the table says."""

    function: Function
    arguments: tuple[Expression | str | int, ...]
    span: Span
    source: str


Expression: TypeAlias = Word | Variable | Union | Binary | Let | Call


def parse(text: str) -> Expression:
    """Raises DiagnosticError, with a caret into the text."""
    parser = _Parser(text, _tokens(text))
    expression = parser.expression()
    if parser.token.kind != "end":
        raise parser.error(f"unexpected '{parser.token.text}' after the end of the query")
    return expression


def patterns(expression: Expression) -> tuple[str, ...]:
    """Every target pattern in the query, each once: what must be loaded to evaluate it."""
    return tuple(dict.fromkeys(_words(expression)))


def _words(expression: Expression) -> Iterator[str]:
    match expression:
        case Word(text=text):
            yield text
        case Union(words=words):
            yield from (word.text for word in words)
        case Binary(left=left, right=right) | Let(value=left, body=right):
            yield from _words(left)
            yield from _words(right)
        case Call(arguments=arguments):
            for argument in arguments:
                if not isinstance(argument, str | int):
                    yield from _words(argument)
        case Variable():
            pass


def _tokens(text: str) -> list[Token]:
    found = []
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        assert match is not None
        position = match.end()
        kind = match.lastgroup or ""
        if match.group("quoted") is not None:
            start = match.start("quote")
            found.append(Token("word", match.group("quoted"), start + 1, match.end() + 1))
            continue
        start, value = match.start(kind), match.group(kind)
        if kind == "bad":
            end = Span(PLACE, 1, start + 1, start + 2)
            fact = "this quote is never closed" if value in "'\"" else f"unexpected character '{value}'"
            raise DiagnosticError(Diagnostic(fact, Blame.BUILD_FILE, end, text))
        is_word = kind == "word" and value not in _KEYWORDS
        found.append(Token("word" if is_word else value, value, start + 1, match.end() + 1))
    return [*found, Token("end", "", len(text) + 1, len(text) + 2)]


class _Parser:
    """Reads tokens from left to right; `variables` are those of the enclosing lets."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.position = 0
        self.variables: list[str] = []

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def expression(self) -> Expression:
        left = self._primary()
        while operator := _OPERATORS.get(self.token.kind):
            self.position += 1
            left = Binary(operator, left, self._primary())
        return left

    def _primary(self) -> Expression:
        token = self.token
        if token.kind == "(":
            self.position += 1
            inner = self.expression()
            self._take(")")
            return inner
        if token.kind == "let":
            return self._let()
        if token.kind == "set":
            return self._set()
        if token.kind != "word":
            raise self.error(
                "the query ends too early" if token.kind == "end" else f"unexpected '{token.text}'"
            )
        self.position += 1
        if self.token.kind == "(":
            return self._call(token)
        if token.text.startswith("$"):
            name = token.text[1:]
            if name not in self.variables:
                raise self.error(
                    f"'${name}' is not bound by a let", token, did_you_mean(name, self.variables)
                )
            return Variable(name)
        return self._word(token)

    def _let(self) -> Expression:
        self.position += 1
        name = self._take("word").text
        self._take("=")
        value = self.expression()
        self._take("in")
        self.variables.append(name)
        body = self.expression()
        self.variables.pop()
        return Let(name, value, body)

    def _set(self) -> Expression:
        self.position += 1
        self._take("(")
        words = []
        while self.token.kind == "word":
            words.append(self._word(self._take("word")))
        self._take(")")
        return Union(tuple(words))

    def _call(self, name: Token) -> Expression:
        function = FUNCTIONS.get(name.text)
        if function is None:
            help = did_you_mean(name.text, FUNCTIONS) or f"functions are {', '.join(FUNCTIONS)}"
            raise self.error(f"there is no function '{name.text}'", name, help)
        self._take("(")
        arguments: list[Expression | str | int] = []
        while self.token.kind != ")" or not arguments:
            if arguments:
                self._take(",")
            if len(arguments) == len(function.parameters) and not function.variadic:
                raise self.error(f"too many arguments: {function.usage}")
            parameter = function.parameters[min(len(arguments), len(function.parameters) - 1)]
            arguments.append(self._argument(parameter))
        if len(arguments) < function.required:
            raise self.error(f"too few arguments: {function.usage}")
        self._take(")")
        return Call(function, tuple(arguments), self._span(name), self.text)

    def _argument(self, parameter: Parameter) -> Expression | str | int:
        if parameter is Parameter.EXPRESSION:
            return self.expression()
        token = self._take("word")
        if parameter is Parameter.WORD:
            return token.text
        if not token.text.isdecimal():
            raise self.error(f"'{token.text}' is no number", token)
        return int(token.text)

    def _take(self, kind: str) -> Token:
        token = self.token
        if token.kind != kind:
            what = "a word" if kind == "word" else f"'{kind}'"
            got = "the query ends" if token.kind == "end" else f"'{token.text}' stands there"
            raise self.error(f"expected {what}, but {got}")
        self.position += 1
        return token

    def _word(self, token: Token) -> Word:
        return Word(token.text, self._span(token), self.text)

    def _span(self, token: Token) -> Span:
        return Span(PLACE, 1, token.column, token.end_column)

    def error(self, fact: str, token: Token | None = None, help: str = "") -> DiagnosticError:
        span = self._span(token or self.token)
        return DiagnosticError(Diagnostic(fact, Blame.BUILD_FILE, span, self.text, help))
