"""Where a target was declared, and where in the text of that call an attribute stands.

Reads no file: the text is handed in.

A BUILD file is, as far as calls and literals go, also Python; so Python's own parser finds the place of an
attribute. It is asked only when something is wrong.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tilebuild.diagnostics import Blame, Diagnostic, Note, Span

#: Steps from a call to a value in it: an attribute's name, then list indices, dict keys and names of nested
#: arguments.
ValuePath = Sequence[str | int]


@dataclass(frozen=True)
class Frame:
    """One call on the way to a declaration, and the text of the file in which it stands."""

    path: str
    line: int
    function: str
    text: str


@dataclass(frozen=True)
class CallSite:
    """The calls that led to a declaration of `rule`, outermost first: BUILD file, then macros."""

    rule: str
    frames: tuple[Frame, ...]

    @property
    def span(self) -> Span:
        """The call in the BUILD file."""
        frame = self.frames[0]
        name = self.rule if len(self.frames) == 1 else self.frames[1].function
        line = _line(frame.text, frame.line)
        match = re.search(rf"\b{re.escape(name)}\s*\(", line) if name else None
        column = (match.start() if match else len(line) - len(line.lstrip())) + 1 if name else 1
        return Span(frame.path, frame.line, column, column + len(name) if match else 0)

    def diagnostic(
        self, fact: str, path: ValuePath = (), help: str = "", words: Collection[str] = ()
    ) -> Diagnostic:
        """A problem with the value at `path` of the call, or with a literal inside it out of `words`."""
        span = self._locate(path, words)
        source = next((f.text for f in self.frames if f.path == span.path), "").splitlines()
        notes = []
        if span.path != self.frames[0].path or len(self.frames) > 1:
            for frame in reversed(self.frames):
                called = Span(frame.path, frame.line)
                if (span.path, span.line) != (called.path, called.line):
                    notes.append(call_note(frame.function, called, _line(frame.text, frame.line)))
        return Diagnostic(fact, Blame.BUILD_FILE, span, help=help, notes=tuple(notes)).with_source(source)

    def note(self, message: str) -> Note:
        """A pointer to the call in the BUILD file, for an error elsewhere."""
        return Note(message, self.span, _line(self.frames[0].text, self.span.line))

    def _locate(self, path: ValuePath, words: Collection[str]) -> Span:
        """The innermost frame whose text shows the value."""
        for index in range(len(self.frames) - 1, -1, -1):
            frame = self.frames[index]
            name = self.rule if index == len(self.frames) - 1 else self.frames[index + 1].function
            call = _find_call(frame, name)
            if call is None:
                continue
            node: ast.AST | None = _walk(call, path)
            if words:
                node = _find_literal(node, words) or (None if index else _find_literal(call, words))
            elif path and node is call.func and index:
                node = None
            if node is not None:
                return _span(frame, node)
        if words and (literal := _find_literal(_tree(self.frames[0].text), words)):
            return _span(self.frames[0], literal)
        if words:
            return self._locate(path, ())
        return self.span


def call_note(function: str, span: Span, source: str) -> Note:
    """A call on the way to a problem, inside a function or at the top of a file."""
    where = "in the BUILD file" if function == "<module>" else f"in macro '{function}'"
    return Note(f"called here, {where}", span, source)


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1] if 0 < number <= len(lines) else ""


@lru_cache(maxsize=16)
def _tree(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's opinion of a BUILD file is not asked for
            return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _find_call(frame: Frame, name: str) -> ast.Call | None:
    tree = _tree(frame.text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree else []
    # Starlark names the line on which a call begins or, in a chain, on which it ends.
    near = [c for c in calls if c.lineno <= frame.line <= (c.end_lineno or c.lineno)]
    named = [c for c in near if _called_name(c) == name]
    return max(named or near, key=lambda c: (c.lineno == frame.line, c.lineno), default=None)


def _called_name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _walk(call: ast.Call, path: ValuePath) -> ast.AST:
    """The last node on the way along `path` that the text shows; the called name if there is none."""
    node: ast.AST = call
    for step in path:
        below = _child(node, step)
        if below is None:
            break
        node = below
    return call.func if node is call else node


def _child(node: ast.AST, step: str | int) -> ast.AST | None:
    if isinstance(node, ast.keyword):
        node = node.value
    if isinstance(node, ast.Call) and isinstance(step, str):
        return next((k for k in node.keywords if k.arg == step), None)
    if isinstance(node, ast.ListComp) and isinstance(step, int):
        return node.elt
    if isinstance(node, ast.List | ast.Tuple) and isinstance(step, int):
        return node.elts[step] if step < len(node.elts) else None
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == step:
                return value
    return None


def _find_literal(node: ast.AST | None, words: Collection[str]) -> ast.AST | None:
    if node is None:
        return None
    return next((n for n in ast.walk(node) if isinstance(n, ast.Constant) and n.value in words), None)


def _span(frame: Frame, node: ast.AST) -> Span:
    """The place of a node; of a keyword argument, its name if the value spans lines."""
    line, column = getattr(node, "lineno", frame.line), getattr(node, "col_offset", 0)
    end_line, end = getattr(node, "end_lineno", line), getattr(node, "end_col_offset", 0)
    text = _line(frame.text, line)
    if end_line != line:
        end = column + len(node.arg) if isinstance(node, ast.keyword) and node.arg else 0
    start, stop = (len(text.encode()[:offset].decode(errors="ignore")) for offset in (column, end))
    return Span(frame.path, line, start + 1, stop + 1 if end else 0)
