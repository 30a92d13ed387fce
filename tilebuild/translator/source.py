"""What the Python source adds to the Rust text: docstrings and comments. Reads text only; imports nothing
of it."""

from __future__ import annotations

import ast
import io
import tokenize
from dataclasses import dataclass

from tilebuild.tileir.tree import Location
from tilebuild.translator.program import Source
from tilebuild.translator.rust.tree import Block, Comment, blocks, walk


@dataclass(frozen=True)
class Remark:
    """A comment and the first line of code that it speaks of."""

    text: str
    line: int


def docstring(source: Source) -> tuple[str, ...]:
    """The lines of the kernel's docstring; empty if it has none."""
    node = _definition(source)
    return tuple((ast.get_docstring(node) or "").splitlines()) if node else ()


def place(source: Source) -> Location | None:
    """Where the kernel is defined."""
    node = _definition(source)
    return Location(source.path, node.lineno, node.col_offset + 1) if node else None


def _definition(source: Source) -> ast.FunctionDef | None:
    nodes = ast.walk(ast.parse(source.text))
    return next((n for n in nodes if isinstance(n, ast.FunctionDef) and n.name == source.kernel), None)


def remarks(source: Source) -> list[Remark]:
    """The comments of the file in order, each with the line of code it stands at or before."""
    found: list[tuple[str, int, bool]] = []
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT:
            own_line = not token.line[: token.start[1]].strip()
            found.append((token.string.lstrip("#").strip(), token.start[0], own_line))
        elif token.type not in (
            tokenize.NL,
            tokenize.NEWLINE,
            tokenize.INDENT,
            tokenize.DEDENT,
            tokenize.ENDMARKER,
        ):
            code.update(range(token.start[0], token.end[0] + 1))
    listed = []
    for text, line, own_line in found:
        target = next((n for n in sorted(code) if n > line), line) if own_line else line
        if text:
            listed.append(Remark(text, target))
    return listed


def annotate(body: Block, source: Source) -> None:
    """Puts each comment before the first statement that stems from the line it speaks of."""
    statements = [s for s in walk(body) if s.location is not None and s.location.path == source.path]
    waiting: dict[int, list[Remark]] = {}
    for remark in remarks(source):
        target = next((s for s in statements if _line(s.location) == remark.line), None)
        if target is not None:
            waiting.setdefault(id(target), []).append(remark)
    _insert(body, waiting)


def _line(location: Location | None) -> int:
    return location.line if location else 0


def _insert(body: Block, waiting: dict[int, list[Remark]]) -> None:
    kept: Block = []
    for statement in body:
        for inner in blocks(statement):
            _insert(inner, waiting)
        kept += [Comment(r.text, statement.location) for r in waiting.get(id(statement), [])]
        kept.append(statement)
    body[:] = kept
