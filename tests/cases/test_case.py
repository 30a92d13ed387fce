"""Cases and launches: from plain data to arrays, signatures and grids, and what is wrong with them."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tilebuild.case import Case, CaseError, read_case
from tilebuild.signature import ArrayParameter, Constant, ListParameter, ScalarParameter


def _array(dtype: str = "f32", shape: list[int] | None = None, **more: Any) -> dict[str, Any]:
    return {"kind": "array", "dtype": dtype, "shape": [8] if shape is None else shape, **more}


def _launch(*arguments: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "launch", "name": "one", "kernel": "k", "args": list(arguments), **more}


def test_a_lone_launch_is_a_case_of_one_step() -> None:
    case = read_case(_launch(_array(), _array(role="out"), 5, {"kind": "const", "value": 16}))
    assert (case.name, case.kernels, list(case.arrays)) == ("one", ("k",), ["arg0", "arg1"])
    assert case.steps[0].args[:2] == ("arg0", "arg1")
    assert case.arrays["arg1"].role == "out"


def test_arrays_of_a_list_are_named_one_by_one() -> None:
    case = read_case(_launch({"kind": "list", "arrays": [_array(), _array(shape=[4])]}))
    assert list(case.arrays) == ["arg0.0", "arg0.1"]
    (parameter,) = case.signature(case.steps[0]).parameters
    assert isinstance(parameter, ListParameter)


def test_a_fact_of_a_list_holds_for_each_of_its_arrays() -> None:
    arrays = [_array("f16", [16, 32]), _array("f16", [16, 40])]
    case = read_case(_launch({"kind": "list", "arrays": arrays}))
    (parameter,) = case.signature(case.steps[0]).parameters
    assert isinstance(parameter, ListParameter)
    assert parameter.element.shape_divisible_by == (16, 1)
    assert parameter.element.stride_divisible_by == (8, 1)
    assert parameter.element.stride_constant == (None, 1)


def test_a_case_is_its_json() -> None:
    case = read_case(
        {
            "kind": "case",
            "name": "two steps",
            "arrays": {
                "x": _array(fill={"kind": "uniform", "low": -1.0, "high": 1.0}),
                "y": _array(role="out", fill={"kind": "constant", "value": -math.inf}),
                "z": _array(shape=[3], alias_of="x", strides=[2], offset=1),
            },
            "steps": [
                {
                    "kernel": "a",
                    "args": ["x", "y", True, 2, 2.5, {"kind": "scalar", "dtype": "i64", "value": 7}],
                },
                {
                    "kernel": "b",
                    "args": [{"kind": "list", "arrays": ["x", "z"]}],
                    "grid": [4, 2],
                    "hints": {"occupancy": 2},
                },
            ],
            "seed": 3,
        }
    )
    assert read_case(json.loads(json.dumps(case.to_json()))) == case


def test_arguments_have_the_types_that_a_launch_gives_them() -> None:
    case = read_case(
        _launch(
            *(_array("bf16"), True, 3, 1 << 40, 2.0),
            *({"kind": "const", "value": True}, {"kind": "const", "value": 1.0}),
            {"kind": "scalar", "dtype": "i64", "value": 1},
            hints={"occupancy": 4},
        )
    )
    array, *rest = case.signature(case.steps[0]).parameters
    assert isinstance(array, ArrayParameter)
    assert array.dtype == "bfloat16"
    assert rest == [
        ScalarParameter("bool_"),
        ScalarParameter("int32"),
        ScalarParameter("int64"),
        ScalarParameter("float32"),
        Constant(True),
        Constant(1.0),
        ScalarParameter("int64"),
    ]
    assert case.signature(case.steps[0]).hints == (("occupancy", 4),)


def test_wide_indices_and_offsets_reach_the_signature() -> None:
    case = read_case(_launch(_array("f16", [4, 4], strides=[24, 1], offset=4, index_dtype="i64")))
    (array,) = case.signature(case.steps[0]).parameters
    assert isinstance(array, ArrayParameter)
    assert (array.index_dtype, array.base_addr_divisible_by) == ("int64", 1)
    assert array.stride_divisible_by == (8, 1)
    assert case.arrays["arg0"].reach == 1 + 3 * 24 + 3


@pytest.mark.parametrize(
    ("data", "path", "fact"),
    [
        (_launch(_array("f33")), ("args", 0, "dtype"), "'f33' is no element type; did you mean 'f32'?"),
        (_launch(1, _array("f4e2m1fn")), ("args", 1, "dtype"), "'f4e2m1fn' is no element type"),
        (_launch(_array(strides=[1, 2])), ("args", 0), "2 strides for 1 dimensions"),
        (_launch(_array(strides=[-1])), ("args", 0), "a stride is negative"),
        (_launch(_array(shape=[-1])), ("args", 0, "shape", 0), "greater than or equal to 0"),
        (_launch(_array(shap=3)), ("args", 0, "shap"), "Extra inputs are not permitted"),
        (
            _launch(_array(fill={"kind": "integers", "low": 3, "high": 3})),
            ("args", 0, "fill"),
            "integers(3, 3) is empty",
        ),
        (_launch(_array(fill={"kind": "normal", "std": "x"})), ("args", 0, "fill", "std"), "valid number"),
        (_launch(_array(), grid=[1, 2, 3, 4]), ("grid",), "at most 3 items"),
        (_launch(_array(), grid=[0]), ("grid", 0), "greater than or equal to 1"),
        (_launch("x"), (), "'k' is given 'x', and the case has no such array"),
        (_launch({"kind": "list", "arrays": [_array(alias_of=4)]}), (), "an alias of 'arg4'"),
        (_launch(_array(), _array(shape=[9], alias_of=0)), (), "'arg1' reaches beyond the end of 'arg0'"),
        (
            _launch(_array(), _array(alias_of=0, fill={"kind": "arange"})),
            (),
            "takes its numbers from 'arg0'; it has no fill",
        ),
        ({"kind": "case", "name": "c", "arrays": {}, "steps": []}, (), "a case needs at least one step"),
        (
            {
                "kind": "case",
                "name": "c",
                "arrays": {"query": _array()},
                "steps": [{"kernel": "k", "args": ["qury"]}],
            },
            (),
            "the case has no such array; did you mean 'query'?",
        ),
    ],
)
def test_what_is_wrong_is_said_at_its_place(
    data: dict[str, Any], path: tuple[str | int, ...], fact: str
) -> None:
    with pytest.raises(CaseError) as caught:
        read_case(data)
    assert [(p, f) for p, f in caught.value.problems if p == path and fact in f], caught.value.problems


class TestGrid:
    def _case(self, **more: Any) -> Case:
        return read_case(_launch(_array(shape=[100]), 7, {"kind": "const", "value": 32}, **more))

    def test_follows_from_the_formula(self) -> None:
        case = self._case()
        formula = ["cdiv(x.shape[0], TILE)", "n"]
        assert case.grid(case.steps[0], ["x", "n", "TILE"], formula) == (4, 7, 1)

    def test_may_be_stated(self) -> None:
        case = self._case(grid=[3])
        assert case.grid(case.steps[0], ["x", "n", "TILE"], None) == (3, 1, 1)

    def test_must_not_contradict_the_formula(self) -> None:
        case = self._case(grid=[3])
        with pytest.raises(CaseError, match=r"states the grid \(3,\), the formula gives \(4,\)"):
            case.grid(case.steps[0], ["x", "n", "TILE"], ["cdiv(x.shape[0], TILE)"])

    def test_must_exist(self) -> None:
        case = self._case()
        with pytest.raises(CaseError, match="no formula for 'k'"):
            case.grid(case.steps[0], ["x", "n", "TILE"], None)

    def test_needs_a_parameter_for_each_argument(self) -> None:
        case = self._case()
        with pytest.raises(CaseError, match="'k' has 2 parameters, the launch 3 arguments"):
            case.grid(case.steps[0], ["x", "n"], ["n"])
