"""Rules from Python files: run under an invented module name, with an allow-list of imports.

Knows no BUILD file.

A rule file sees pydantic, `tilebuild.rule` and the pure part of the standard library; other rule files only
through `load("//rules:common.py", "name")`. It has no access to files, clock or environment. This keeps
authors from depending on what no digest covers; it is no defence against malice.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from types import ModuleType
from typing import Any, NoReturn

from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError, Span, did_you_mean
from tilebuild.rule import Rule

#: What a rule file may import; a name covers what lies below it.
ALLOWED_IMPORTS = (
    *("__future__", "abc", "bisect", "collections", "copy", "dataclasses", "decimal", "enum", "fractions"),
    *("functools", "hashlib", "heapq", "itertools", "json", "math", "numbers", "operator", "pydantic", "re"),
    *(
        "statistics",
        "string",
        "textwrap",
        "tilebuild.rule",
        "types",
        "typing",
        "typing_extensions",
        "unicodedata",
    ),
)
#: The standard rules may also use the nouns of the tool.
_STANDARD_IMPORTS = (*ALLOWED_IMPORTS, "tilebuild")
_FORBIDDEN_BUILTINS = ("breakpoint", "compile", "eval", "exec", "exit", "help", "input", "open", "quit")


@dataclass(frozen=True)
class RuleLoad:
    """One `load(...)` at the top of a rule file."""

    text: str
    symbols: Mapping[str, str]  # name here -> name there
    span: Span


@dataclass(frozen=True)
class RuleFile:
    """A rule file that ran: its public names, and the digest of its text and of all that it loads."""

    path: str
    symbols: Mapping[str, Any]
    digest: str

    def symbol(self, name: str, span: Span | None) -> Any:
        """A public name. Raises DiagnosticError."""
        if name in self.symbols:
            return self.symbols[name]
        reason = "is private" if name.startswith("_") else "is not defined there"
        help = did_you_mean(name, self.symbols)
        raise DiagnosticError(
            Diagnostic(
                f"cannot load '{name}' from {self.path}: it {reason}", Blame.BUILD_FILE, span, help=help
            )
        )


@dataclass(frozen=True)
class ParsedRuleFile:
    path: str
    text: str
    tree: ast.Module
    loads: tuple[RuleLoad, ...]
    standard: bool


def parse(path: str, text: str, *, standard: bool) -> ParsedRuleFile:
    """Reads a rule file and checks what it imports. Raises DiagnosticError."""
    try:
        tree = ast.parse(text, path)
    except SyntaxError as error:
        span = Span(path, error.lineno or 0, error.offset or 0, error.end_offset or 0)
        raise DiagnosticError(_at(error.msg, span, text)) from None
    allowed = _STANDARD_IMPORTS if standard else ALLOWED_IMPORTS
    problems = [
        _forbidden(name, path, node, text) for node, name in _imports(tree) if not _is_allowed(name, allowed)
    ]
    if problems:
        raise DiagnosticError(*problems)
    return ParsedRuleFile(path, text, tree, tuple(_loads(path, text, tree)), standard)


def evaluate(parsed: ParsedRuleFile, loaded: Mapping[str, RuleFile]) -> RuleFile:
    """Runs a rule file; `loaded` has a file for each text of a load. Raises DiagnosticError."""
    state = sha256(parsed.text.encode())
    bound: dict[str, Any] = {}
    for load in parsed.loads:
        other = loaded[load.text]
        state.update(other.digest.encode())
        for here, there in load.symbols.items():
            bound[here] = other.symbol(there, load.span)
    digest = state.hexdigest()
    module = _module(parsed, digest)
    module.__dict__.update(bound)
    # Tracebacks find the text here, wherever the current folder is.
    lines = parsed.text.splitlines(keepends=True)
    linecache.cache[parsed.path] = (len(parsed.text), None, lines, parsed.path)
    try:
        exec(compile(parsed.tree, parsed.path, "exec"), module.__dict__)
    except Exception as error:
        raise DiagnosticError(failure(error, parsed.path, parsed.text, "the rule file failed")) from error
    public = {
        name: value for name, value in vars(module).items() if not name.startswith("_") and name not in bound
    }
    symbols = {
        n: replace(v, digest=digest) if isinstance(v, Rule) else v for n, v in public.items() if n != "load"
    }
    return RuleFile(parsed.path, symbols, digest)


def failure(error: Exception, path: str, text: str, what: str) -> Diagnostic:
    """An exception of a rule's own code, at the deepest line of its file."""
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    line = lines[-1] if lines else None
    span = (
        Span(path, line.lineno or 0, (line.colno or 0) + 1 if line.colno is not None else 0)
        if line
        else Span(path)
    )
    return _at(f"{what}: {type(error).__name__}: {error}", span, text)


def _module(parsed: ParsedRuleFile, digest: str) -> ModuleType:
    """An empty module.

    It is registered, since dataclasses and pydantic look names of annotations up by module.
    """
    name = f"tilebuild_rule_file_{digest[:16]}"
    module = sys.modules[name] = ModuleType(name)
    allowed = _STANDARD_IMPORTS if parsed.standard else ALLOWED_IMPORTS
    module.__dict__["__builtins__"] = _builtins(allowed)
    module.__dict__["__file__"] = parsed.path
    module.__dict__["load"] = lambda *args, **kwargs: None  # bound before the file runs
    return module


def _builtins(allowed: tuple[str, ...]) -> dict[str, Any]:
    def guarded_import(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: tuple[str, ...] = (),
        level: int = 0,
    ) -> ModuleType:
        if level or not _is_allowed(name, allowed):
            raise ImportError(f"a rule file may not import {name!r}")
        return __import__(name, globals, locals, fromlist, level)

    names: dict[str, Any] = dict(vars(builtins))
    names["__import__"] = guarded_import
    for name in _FORBIDDEN_BUILTINS:
        names[name] = _refusal(name)
    return names


def _refusal(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: object, **kwargs: object) -> NoReturn:
        raise PermissionError(f"a rule file may not call {name}()")

    return refuse


def _imports(tree: ast.Module) -> list[tuple[ast.stmt, str]]:
    found: list[tuple[ast.stmt, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node, "." * node.level + (node.module or "")))
    return found


def _is_allowed(name: str, allowed: tuple[str, ...]) -> bool:
    return any(name == entry or name.startswith(entry + ".") for entry in allowed)


def _forbidden(name: str, path: str, node: ast.stmt, text: str) -> Diagnostic:
    help = (
        "rule files import pydantic, tilebuild.rule and pure modules of the standard library,\n"
        "and have no access to files, clock or environment;\n"
        'another rule file comes by load("//package:file.py", "name")'
    )
    span = Span(path, node.lineno, node.col_offset + 1, node.end_col_offset + 1 if node.end_col_offset else 0)
    return _at(f"a rule file may not import '{name}'", span, text, help)


def _loads(path: str, text: str, tree: ast.Module) -> list[RuleLoad]:
    found = []
    for statement in tree.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "load"):
            continue
        span = Span(
            path, call.lineno, call.col_offset + 1, call.end_col_offset + 1 if call.end_col_offset else 0
        )
        words = [_text(argument) for argument in call.args]
        renamed = {keyword.arg or "": _text(keyword.value) for keyword in call.keywords}
        if len(words) + len(renamed) < 2 or None in words or None in renamed.values() or "" in renamed:
            raise DiagnosticError(_at("load takes a label and names, all of them literal texts", span, text))
        label, *names = (word for word in words if word is not None)
        symbols = {name: name for name in names} | {here: there for here, there in renamed.items() if there}
        found.append(RuleLoad(label, symbols, span))
    return found


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _at(fact: str, span: Span, text: str, help: str = "") -> Diagnostic:
    return Diagnostic(fact, Blame.BUILD_FILE, span, help=help).with_source(text.splitlines())
