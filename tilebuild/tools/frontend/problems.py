"""What goes wrong in a kernel file, as diagnostics at the user's line. Knows the exceptions of cuda.tile, not
how to compile."""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Sequence
from typing import Any

from cuda.tile._exception import Loc, TileError

from tilebuild.diagnostics import Blame, Diagnostic, Note, Span
from tilebuild.python_text import read_python
from tilebuild.tools.frontend.sources import Sources


def of_front_end(error: TileError, sources: Sources) -> Diagnostic:
    """The compiler refuses the kernel."""
    fact, _, rest = error.message.strip().removesuffix("Unknown location").rstrip().partition("\n")
    fact = fact or f"the cuTile front end fails here with {_innermost(error)}"
    place = error.loc
    notes = []
    caller = place.call_site
    while caller is not None:
        notes.append(Note("called from here", _span(caller, sources), _line(caller)))
        caller = caller.call_site
    if place.is_unknown():
        return Diagnostic(fact, Blame.KERNEL, help=rest, notes=tuple(notes))
    return Diagnostic(fact, Blame.KERNEL, _span(place, sources), _line(place), rest, tuple(notes))


def of_crash(error: Exception, span: Span, source: str) -> Diagnostic:
    """The compiler raises what is no refusal of its own; it says so of arguments that a kernel's annotations
    forbid."""
    if isinstance(error, TypeError) and str(error).startswith("Invalid "):
        return Diagnostic(str(error), Blame.BUILD_FILE, span, source)
    return Diagnostic(
        f"the cuTile front end fails on this kernel with {_innermost(error)}", Blame.KERNEL, span, source
    )


def of_invalid_code(
    words: str, places: Sequence[Loc], span: Span, source: str, sources: Sources
) -> Diagnostic:
    """The disassembler refuses what the compiler made. In its `words`, which know debug information, stands
    where in the kernel the operation at fault comes from; `span` is the kernel, for when that is not so."""
    fact, _, _ = re.sub(r"^.*?error: ", "", words, count=1).partition("\n")
    if found := re.search(r'loc\("([^"]*)":(\d+):(\d+)\)', words):
        key = (found.group(1), int(found.group(2)), int(found.group(3)))
        place = next((p for p in places if (p.filename, p.line, p.col) == key), None)
        if place is not None:
            span, source = _span(place, sources), _line(place)
    help = (
        "the kernel does not compile without tilebuild either: cuda-tile makes code here that its own tools\n"
        "refuse. Write the line with other operations or element types"
    )
    return Diagnostic(
        f"the cuTile front end makes invalid Tile IR of this: {fact}", Blame.KERNEL, span, source, help
    )


def of_import(error: Exception, sources: Sources, path: str) -> Diagnostic:
    """Running the kernel file itself failed: a syntax error, or an exception in a statement of the file."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return _of_syntax_error(error, sources)
    fact = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = [f for f in traceback.extract_tb(error.__traceback__) if sources.owns(f.filename)]
    if not frames:
        return Diagnostic(f"importing {path}: {fact}", Blame.KERNEL, Span(path))
    *callers, last = frames
    notes = tuple(
        Note("imported or called from here", _frame_span(f, sources), f.line or "") for f in callers
    )
    return Diagnostic(fact, Blame.KERNEL, _frame_span(last, sources), _full_line(last), notes=notes)


def _innermost(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    return text.strip().partition("\n")[0]


def _of_syntax_error(error: SyntaxError, sources: Sources) -> Diagnostic:
    line, column = error.lineno or 0, error.offset or 0
    end = error.end_offset or 0
    if error.end_lineno != error.lineno or end <= column:
        end = 0
    span = Span(sources.relative(str(error.filename)), line, column, end)
    return Diagnostic(
        f"{type(error).__name__}: {error.msg}", Blame.KERNEL, span, (error.text or "").rstrip("\n")
    )


def place_of_function(function: Any, sources: Sources) -> tuple[Span, str]:
    """Where the `def` of a function stands, and that line."""
    file = function.__code__.co_filename
    return place_of_definition(function.__name__, sources.relative(file), sources)


def place_of_definition(name: str, path: str, sources: Sources) -> tuple[Span, str]:
    """Where a declared source defines `name` last, as a function or by assignment, and that line."""
    lines = read_python(sources.root / path, path).splitlines()
    pattern = re.compile(rf"\s*(?:async\s+def|def|class)?\s*\b({re.escape(name)})\b\s*[(=:]")
    for number in range(len(lines), 0, -1):
        if found := pattern.match(lines[number - 1]):
            return Span(path, number, found.start(1) + 1, found.end(1) + 1), lines[number - 1]
    return Span(path), ""


def _span(place: Loc, sources: Sources) -> Span:
    if place.filename is None:
        return Span("")
    text = linecache.getline(place.filename, place.line)
    end = _column(text, place.end_col) if place.end_col is not None and place.last_line == place.line else 0
    return Span(sources.relative(place.filename), place.line, _column(text, place.col), end)


def _column(text: str, offset: int) -> int:
    """cuda.tile and `ast` count the bytes before; a span counts characters from 1."""
    return len(text.encode()[:offset].decode(errors="replace")) + 1


def _line(place: Loc) -> str:
    return linecache.getline(place.filename or "", place.line).rstrip("\n")


def _frame_span(frame: traceback.FrameSummary, sources: Sources) -> Span:
    text = _full_line(frame)
    column = _column(text, frame.colno) if frame.colno is not None else 0
    same_line = frame.end_lineno == frame.lineno and frame.end_colno is not None
    end = _column(text, frame.end_colno or 0) if same_line else 0
    return Span(sources.relative(frame.filename), frame.lineno or 0, column, end)


def _full_line(frame: traceback.FrameSummary) -> str:
    return linecache.getline(frame.filename, frame.lineno or 0).rstrip("\n")
