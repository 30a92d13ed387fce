"""From Rust lines to Python lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilebuild.diagnostics import Blame, Span
from tilebuild.tools.line_map import LineMap

LINES = LineMap([(20, "k.py", 9), (10, "k.py", 3), (24, "helpers.py", 1)])


@pytest.mark.parametrize(
    ("rust", "python"),
    [(0, None), (9, None), (10, "k.py:3"), (19, "k.py:3"), (20, "k.py:9"), (1000, "helpers.py:1")],
)
def test_a_line_between_two_rows_belongs_to_the_one_before(rust: int, python: str | None) -> None:
    found = LINES.python(rust)
    assert (str(found) if found else None) == python


def test_a_problem_is_shown_at_the_python_line_with_the_rust_line_as_note() -> None:
    problem = LINES.diagnostic("mismatched types", Span("k.rs", 21, 5), "let x = y;")
    assert problem.blame is Blame.TILEBUILD
    assert str(problem.span) == "k.py:9"
    assert [(str(n.span), n.source) for n in problem.notes] == [("k.rs:21:5", "let x = y;")]


def test_a_port_written_by_hand_has_no_map(tmp_path: Path) -> None:
    lines = LineMap.read(tmp_path / "map.json")
    assert str(lines.diagnostic("mismatched types", Span("k.rs", 21, 5), "").span) == "k.rs:21:5"
