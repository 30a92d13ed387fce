"""The only module that knows the Starlark interpreter: parse, evaluate, and errors as diagnostics.

Knows no rule and no label.

What the binding lacks is made up for here: exceptions of callbacks keep their type, errors have a place and
the macros that led there, an unclosed bracket is found, and an interruption ends an endless loop.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import starlark

from tilebuild.call_site import CallSite, Frame, call_note
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError, Span

Frozen = starlark.FrozenModule

#: Files of this name are the tool's own; errors in them are shown where the user called them.
PRELUDE = "<prelude>"

_MAX_CALL_STACK = 200
_FRAME = re.compile(r"^  \* (.+):(\d+), in (\S+)$", re.MULTILINE)
_PLACE = re.compile(r"^ *--> (.+):(\d+):(\d+)$", re.MULTILINE)
_CARET = re.compile(r"^  +\|( +)(\^+)", re.MULTILINE)


@dataclass(frozen=True)
class Load:
    """One load statement: the text of its label and where that stands."""

    text: str
    symbols: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class Parsed:
    path: str
    text: str
    ast: starlark.AstModule
    loads: tuple[Load, ...]


class Opaque:
    """A Python value on its way through Starlark, which can only put it into lists and hand it back."""

    def __init__(self, value: object) -> None:
        self.value = value


def opaque(value: object) -> list[starlark.OpaquePythonObject]:
    """`value` for Starlark: a list of one, since only a list can be added to other lists."""
    return [starlark.OpaquePythonObject(Opaque(value))]


@dataclass
class Interpreter:
    """Evaluates modules. `texts` holds every text that was parsed, by path, for the errors."""

    texts: dict[str, str] = field(default_factory=dict)
    _raised: list[BaseException] = field(default_factory=list)

    def parse(self, path: str, text: str, *, build_file: bool) -> Parsed:
        """Reads a file. A BUILD file holds neither `def` nor `lambda`. Raises DiagnosticError."""
        self.texts[path] = text
        try:
            ast = starlark.parse(path, text, _dialect(build_file))
        except starlark.StarlarkError as error:
            # The interpreter has no place for a bracket that is left open.
            hole = None if "unfinished string" in str(error) else _unclosed_bracket(text)
            if hole is not None:
                line, column, bracket = hole
                span = Span(path, line, column, column + 1)
                raise DiagnosticError(_at(f"'{bracket}' is never closed", span, text)) from None
            raise DiagnosticError(self._diagnostic(str(error))) from None
        return Parsed(path, text, ast, _loads(path, text, ast))

    def evaluate(
        self, parsed: Parsed, loaded: Mapping[str, Frozen], prelude: tuple[str, Frozen] | None = None
    ) -> Frozen:
        """Runs a file.

        `loaded` has a module for each text of a load; `prelude` is a load statement of it and the module.

        Raises DiagnosticError; whatever a callback raised comes out as it was.
        """
        module = starlark.Module()
        modules = dict(loaded)
        if prelude is not None:
            statement, modules[PRELUDE] = prelude
            self._run(module, starlark.parse(PRELUDE, statement, _dialect(False)), modules)
        self._run(module, parsed.ast, modules)
        return module.freeze()

    def module(self, text: str, callables: Mapping[str, Callable[..., object]]) -> Frozen:
        """A module of the tool's own, whose functions may call back."""
        module = starlark.Module()
        for name, function in callables.items():
            module.add_callable(name, self._guarded(function))
        self._run(module, starlark.parse(PRELUDE, text, _dialect(False)), {})
        return module.freeze()

    def call_site(self, stack: str, rule: str) -> CallSite:
        """Where a function of the prelude was called, from the text of `call_stack()`."""
        frames = [
            Frame(path, int(line), function.rpartition(".")[2], self.texts.get(path, ""))
            for path, line, function in _FRAME.findall(stack)
            if path != PRELUDE
        ]
        return CallSite(rule, tuple(frames))

    def _run(self, module: starlark.Module, ast: starlark.AstModule, loaded: Mapping[str, Frozen]) -> None:
        # Polling gives Python the chance to notice Ctrl-C inside a long loop.
        options = starlark.EvalOptions(check_cancelled=lambda: False, max_callstack_size=_MAX_CALL_STACK)
        self._raised.clear()
        try:
            starlark.eval_with(
                options, module, ast, _GLOBALS, file_loader=starlark.FileLoader(loaded.__getitem__)
            )
        except starlark.StarlarkError as error:
            if self._raised:
                raise self._raised[0] from None
            raise DiagnosticError(self._diagnostic(str(error))) from None

    def _guarded(self, function: Callable[..., object]) -> Callable[..., object]:
        """`function`, remembering what it raises: Starlark would turn it, even an interruption, into text."""

        def call(*args: Any, **kwargs: Any) -> object:
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                self._raised.append(error)
                raise

        return call

    def _diagnostic(self, message: str) -> Diagnostic:
        """The interpreter's words, taken apart: fact, place, and the calls that led there."""
        head, _, excerpt = message.partition(" --> ") if " --> " in message else message.partition("--> ")
        fact = head.rpartition("error: ")[2].strip() or message.strip()
        place = _PLACE.search("--> " + excerpt)
        frames = [(p, int(line), f) for p, line, f in _FRAME.findall(head)]
        inside_prelude = place is not None and place.group(1) == PRELUDE
        users = [frame for frame in frames if frame[0] != PRELUDE]
        if place is not None and not inside_prelude:
            path, line, column = place.group(1), int(place.group(2)), int(place.group(3))
            caret = _CARET.search(excerpt)
            span = Span(path, line, column, column + len(caret.group(2)) if caret else 0)
        elif users:
            path, line, _ = users[-1]
            text = _line(self.texts.get(path, ""), line)
            span = Span(path, line, len(text) - len(text.lstrip()) + 1)
        else:
            return Diagnostic(fact, Blame.BUILD_FILE)
        notes = tuple(
            call_note(function, Span(path, line), _line(self.texts.get(path, ""), line))
            for path, line, function in reversed(users)
            if (path, line) != (span.path, span.line)
        )
        fact, help = _reworded(fact)
        return Diagnostic(
            fact, Blame.BUILD_FILE, span, _line(self.texts.get(span.path, ""), span.line), help, notes
        )


_GLOBALS = starlark.Globals.extended_by(
    [starlark.LibraryExtension.StructType, starlark.LibraryExtension.CallStack]
)


def _dialect(build_file: bool) -> starlark.Dialect:
    dialect = starlark.Dialect.standard()
    dialect.enable_def = not build_file
    dialect.enable_lambda = not build_file
    dialect.enable_keyword_only_arguments = True
    dialect.enable_load_reexport = False
    return dialect


def _loads(path: str, text: str, ast: starlark.AstModule) -> tuple[Load, ...]:
    lines = text.splitlines()
    found = []
    for load in ast.loads():
        # The binding does not say where a load stands; its label is a literal, so it can be found.
        span = Span(path)
        for number, line in enumerate(lines, 1):
            column = line.find(load.module_id)
            if column > 0 and line[column - 1] in "'\"" and not line.lstrip().startswith("#"):
                span = Span(path, number, column, column + len(load.module_id) + 2)
                break
        found.append(Load(load.module_id, tuple(load.symbols.values()), span))
    return tuple(found)


def _reworded(fact: str) -> tuple[str, str]:
    """The interpreter's message in the words of this tool, and its advice apart."""
    fact = fact.removeprefix("Parse error: ").removeprefix("fail: ").replace(f"{PRELUDE}.", "")
    fact, _, suggestion = fact.partition(", did you mean ")
    help = f"did you mean {suggestion}".replace("`", "'") if suggestion else ""
    if match := re.fullmatch(r"Variable `(.+)` not found", fact):
        return f"name '{match.group(1)}' is not defined", help
    if match := re.fullmatch(r"Found `(.+)` extra named parameter\(s\) for call to (.+)", fact):
        return f"{match.group(2)} has no parameter '{match.group(1)}'", help
    if match := re.fullmatch(r"Found (\d+) extra positional argument\(s\) for call to (.+)", fact):
        return f"{match.group(2)} got {match.group(1)} positional arguments too many", help
    if match := re.fullmatch(r"(unexpected .+ here), expected one of (.+)", fact):
        expected = match.group(2)
        comma = '","' in expected and "identifier" in match.group(1)
        return match.group(1), "is a comma missing before it?" if comma else help
    if match := re.fullmatch(r"`(.+)` is not allowed in this dialect", fact):
        return f"'{match.group(1)}' is not allowed in a BUILD file", "put it into a .bzl file and load that"
    if match := re.fullmatch(r"`(.+)` cannot be used outside `def` in this dialect", fact):
        return f"'{match.group(1)}' may stand only inside a function", "a comprehension may stand anywhere"
    fact = fact.replace("Module has no symbol", "the loaded file has no symbol")
    return fact.replace("`", "'"), help


def _unclosed_bracket(text: str) -> tuple[int, int, str] | None:
    """The innermost bracket left open at the end of the text, after its line and column."""
    stack: list[tuple[int, int, str]] = []
    scanner = re.compile(
        r"#[^\n]*|r?('''|\"\"\")(?:\\.|(?!\1).)*\1|r?(['\"])(?:\\.|(?!\2)[^\n\\])*\2|[()\[\]{}]", re.DOTALL
    )
    for match in scanner.finditer(text):
        token = match.group()
        if token in "([{":
            line = text.count("\n", 0, match.start()) + 1
            stack.append((line, match.start() - text.rfind("\n", 0, match.start()), token))
        elif token in ")]}" and (not stack or stack.pop()[2] + token not in ("()", "[]", "{}")):
            return None
    return stack[-1] if stack else None


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1] if 0 < number <= len(lines) else ""


def _at(fact: str, span: Span, text: str) -> Diagnostic:
    return Diagnostic(fact, Blame.BUILD_FILE, span).with_source(text.splitlines())
