"""Every refusal of the translator names its Python line and a way out."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import tilebuild.translator
from tilebuild.diagnostics import Blame
from tilebuild.tileir.tree import Location
from tilebuild.translator import source as python_source
from tilebuild.translator.program import Source
from tilebuild.translator.refusal import Refusal

FOLDER = Path(tilebuild.translator.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))


def _refusals(path: Path) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Refusal"
    ]


def _help(call: ast.Call) -> ast.expr | None:
    named = [k.value for k in call.keywords if k.arg == "help"]
    return named[0] if named else (call.args[1] if len(call.args) > 1 else None)


def test_there_are_refusals() -> None:
    assert sum(len(_refusals(path)) for path in FILES) > 30


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(FOLDER).as_posix())
def test_every_refusal_has_a_way_out(path: Path) -> None:
    for call in _refusals(path):
        written = _help(call)
        place = f"{path.name}:{call.lineno}"
        assert written is not None, f"{place}: a refusal without help"
        if isinstance(written, ast.Constant):
            assert str(written.value).strip(), f"{place}: an empty help"


def test_help_must_be_given() -> None:
    assert inspect.signature(Refusal).parameters["help"].default is inspect.Parameter.empty


def test_a_refusal_keeps_the_first_place_and_becomes_a_diagnostic() -> None:
    place = Location("kernel.py", 7, 5)
    refusal = Refusal("this has no Rust form", "write that").at(place).at(Location("kernel.py", 1, 1))
    told = refusal.diagnostic()
    assert (told.fact, told.help, told.blame) == ("this has no Rust form", "write that", Blame.KERNEL)
    assert str(told.span) == "kernel.py:7:5"


def test_a_refusal_without_a_place_is_told_at_the_kernel() -> None:
    text = "import cuda.tile as ct\n\n\n@ct.kernel\ndef scale(x):\n    pass\n"
    assert python_source.place(Source("kernel.py", text, "scale")) == Location("kernel.py", 5, 1)
