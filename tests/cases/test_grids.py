"""Grid expressions: what they mean, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilebuild.grids import (
    ArrayFacts,
    Binary,
    Bindings,
    Call,
    Expression,
    Extent,
    GridError,
    Name,
    Number,
    evaluate,
    evaluate_grid,
    parse,
    references,
    text_of,
)

BINDINGS: Bindings = {"a": ArrayFacts((100, 64), (64, 1)), "n": 7, "TILE": 32}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("n", 7),
        ("a.shape[0]", 100),
        ("a.strides[0]", 64),
        ("cdiv(a.shape[0], TILE) * min(n, 4)", 16),
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("-7 // 2", -4),
        ("-7 % 4", 1),
        ("cdiv(-7, 2)", -3),
        ("max(1, n, 3)", 7),
        ("  n  ", 7),
    ],
)
def test_values(text: str, value: int) -> None:
    assert evaluate(parse(text), BINDINGS) == value


@pytest.mark.parametrize(
    ("text", "fact", "column"),
    [
        ("n / 2", "the operator of 'n / 2' is not part of grid expressions", 1),
        ("1 + 2.0", "'2.0' is not part of grid expressions", 5),
        ("n if n else 1", "is not part of grid expressions", 1),
        ("a.size", "'a.size' is not part of grid expressions", 1),
        ("a.shape[n]", "'a.shape[n]' is not part of grid expressions", 1),
        ("cidv(n, 2)", "grid expressions have no function 'cidv'", 1),
        ("cdiv(n)", "cdiv takes two arguments", 1),
        ("min(n)", "min takes two arguments or more", 1),
        ("True", "'True' is not part of grid expressions", 1),
        ("n +", "cannot read the grid expression 'n +'", 0),
        ("a.shape[-1]", "'a.shape[-1]' is not part of grid expressions", 1),
        ("__import__('os')", "grid expressions have no function '__import__'", 1),
    ],
)
def test_what_is_not_part_of_the_language(text: str, fact: str, column: int) -> None:
    with pytest.raises(GridError) as caught:
        parse(text)
    assert fact in caught.value.fact
    assert caught.value.column == column


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("m", "the kernel has no parameter 'm' that a grid may use"),
        ("a", "'a' is an array"),
        ("n.shape[0]", "'n' is not an array and has no shape"),
        ("a.shape[2]", "a.shape[2] is out of range: 'a' has rank 2"),
        ("n // 0", "division by zero in 'n // 0'"),
        ("cdiv(n, n - 7)", "division by zero"),
    ],
)
def test_what_a_launch_cannot_answer(text: str, fact: str) -> None:
    with pytest.raises(GridError) as caught:
        evaluate(parse(text), BINDINGS)
    assert fact in caught.value.fact


def test_help_names_the_nearest() -> None:
    with pytest.raises(GridError) as caught:
        evaluate(parse("TIL"), BINDINGS)
    assert caught.value.help == "did you mean 'TILE'?"


def test_a_grid_needs_blocks() -> None:
    assert evaluate_grid(("n", "1"), BINDINGS) == (7, 1)
    with pytest.raises(GridError, match="gives 0; a grid needs at least one block"):
        evaluate_grid(("n - 7",), BINDINGS)


def test_references_are_found_in_order() -> None:
    found = list(references(parse("cdiv(a.shape[0], TILE) * n")))
    assert found == [Extent("a", "shape", 0), Name("TILE"), Name("n")]


TREES = st.recursive(
    st.one_of(
        st.integers(0, 1000).map(Number),
        st.just(Name("n")),
        st.sampled_from([Extent("a", "shape", 0), Extent("a", "strides", 1)]),
    ),
    lambda children: st.one_of(
        st.builds(Binary, st.sampled_from(["+", "-", "*", "//", "%"]), children, children),
        st.builds(
            lambda f, arguments: Call(f, arguments),
            st.sampled_from(["cdiv", "min", "max"]),
            st.tuples(children, children),
        ),
    ),
)


@given(TREES)
def test_text_and_tree_are_the_same(tree: Expression) -> None:
    assert parse(text_of(tree)) == tree
