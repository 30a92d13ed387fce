"""What users write in other encodings, with wrong names or with an exit in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilebuild.diagnostics import DiagnosticError
from tilebuild.grids import GridError, evaluate_grid
from tilebuild.python_text import read_python
from tilebuild.tools.grid_text import rust_grid
from tilebuild.tools.reference import load_function

TEXT = "# café\nx = 1\n"


def test_utf_8_is_read(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_bytes(TEXT.encode())
    assert read_python(file) == TEXT


def test_a_declared_encoding_is_honoured(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    text = "# -*- coding: latin-1 -*-\n" + TEXT
    file.write_bytes(text.encode("latin-1"))
    assert read_python(file) == text


def test_what_is_no_text_is_said(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_bytes(TEXT.encode("latin-1"))
    with pytest.raises(DiagnosticError, match=r"k\.py: kernel error: the file is no text in its encoding"):
        read_python(file, "k.py")


def test_a_reference_that_leaves_is_an_error_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "r.py"
    file.write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(DiagnosticError, match=r"r\.py:2: kernel error: SystemExit: 0"):
        load_function(str(file), "r")


def test_a_grid_formula_with_an_unknown_name() -> None:
    with pytest.raises(DiagnosticError, match="names 'xs', which is no parameter of the kernel"):
        rust_grid(["cdiv(xs.shape[0], TILE)"], {"x": "x"}, {"TILE": "TILE"})


@pytest.mark.parametrize(("texts", "allowed"), [(("2147483647",), True), (("2147483648",), False)])
def test_a_grid_has_a_limit(texts: tuple[str, ...], allowed: bool) -> None:
    if allowed:
        assert evaluate_grid(texts, {}) == (2147483647,)
    else:
        with pytest.raises(GridError, match="the limit there is 2147483647 blocks"):
            evaluate_grid(texts, {})


def test_further_axes_have_a_lower_limit() -> None:
    with pytest.raises(GridError, match="the limit there is 65535 blocks"):
        evaluate_grid(("1", "65536"), {})
