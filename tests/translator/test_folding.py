"""Which functions fold into one generic function."""

from __future__ import annotations

from dataclasses import replace

from tilebuild.translator.folding import fold, skeleton
from tilebuild.translator.program import Parameter
from tilebuild.translator.rust.printer import Text

ARRAY = Parameter("x", "array", "float32", 1)
TILE = Parameter("TILE", "constant", value=32)


def _text(*lines: str) -> Text:
    return Text(list(lines), [None] * len(lines))


def test_types_and_lengths_become_generic() -> None:
    single = _text("fn f(x: &Tensor<f32, { [-1] }>) {", "let t: Tile<f32, { [32] }> = y;")
    double = _text("fn f(x: &Tensor<f64, { [-1] }>) {", "let t: Tile<f64, { [64] }> = y;")
    assert skeleton(single) == skeleton(double)
    members = [[ARRAY, TILE], [replace(ARRAY, dtype="float64"), replace(TILE, value=64)]]
    folded = fold("f", [single, double], members)
    assert folded is not None
    assert [g.values for g in folded.generics] == [("f32", "f64"), ("32", "64")]


def test_a_suffix_of_a_number_is_no_type() -> None:
    """`0.0Element` is not Rust."""
    single = _text("let t = broadcast_scalar(0.5f32, shape![32]);")
    double = _text("let t = broadcast_scalar(0.5f64, shape![32]);")
    assert skeleton(single) != skeleton(double)


def test_an_integer_keeps_its_suffix() -> None:
    assert skeleton(_text("f(3i8)")) != skeleton(_text("f(3i64)"))
