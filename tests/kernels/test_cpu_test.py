"""The CPU test on real kernels: right programs pass, wrong ones are found out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kernels.bench import Operator, inside, operator
from tilebuild.case import Case, read_case
from tilebuild.diagnostics import DiagnosticError
from tilebuild.tools import cpu_test

OPERATORS = (
    "//kernels:vector_add",
    "//kernels:softmax",
    "//kernels:matmul",
    "//tests/kernels/probes:gather",
    "//tests/kernels/probes:column_sum",
    "//tests/kernels/probes:collatz",
    "//tests/kernels/probes:linear_bias",
    "//tests/kernels/probes:scale_wide",
)
Bench = Callable[[str], Operator]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    made: dict[str, Operator] = {}

    def get(label: str) -> Operator:
        if label not in made:
            made[label] = operator(label, tmp_path_factory.mktemp("operator"))
        return made[label]

    return get


@pytest.mark.parametrize("label", OPERATORS)
def test_kernels_of_this_repository_pass(label: str, bench: Bench) -> None:
    for case in bench(label).cases:
        verdict = bench(label).verdict(case)
        expected = "not-applicable" if case.benchmark or any(s.benchmark for s in case.steps) else "passed"
        assert verdict["state"] == expected, (case.name, verdict["reason"])


def _replace(old: str, new: str, count: int = 0) -> Callable[[str], str]:
    def edit(text: str) -> str:
        edited = re.sub(old, new, text, count=count)
        assert edited != text, f"nothing matches {old!r}"
        return edited

    return edit


def _without(pattern: str) -> Callable[[str], str]:
    return _replace(rf".*{pattern}.*\n", "")


MUTATIONS = {
    "another operation": ("//kernels:vector_add", "f32_1025", _replace("addf", "subf"), "rust vs python: c"),
    "another order of subtraction": (
        "//kernels:softmax",
        "f16_5x17",
        _replace(r"subf (%\w+), (%\w+)", r"subf \2, \1"),
        "rust vs python: out",
    ),
    "another padding": (
        "//kernels:softmax",
        "f16_5x17",
        _replace("padding_value = neg_inf", "padding_value = zero"),
        "rust vs python: out",
    ),
    "no padding": (
        "//kernels:softmax",
        "f16_5x17",
        _replace(", padding_value = neg_inf", ""),
        "rust: the results depend on lanes that lie outside of an array",
    ),
    "exchanged indices": (
        "//kernels:matmul",
        "f16_33x65x50",
        _replace(r"(store_view_tko weak %\w+, %\w+)\[(%\w+), (%\w+)\]", r"\1[\3, \2]"),
        "rust: it does not write all of c",
    ),
    "one loop iteration less": (
        "//kernels:matmul",
        "bf16_33x65x50",
        _replace(r"for (%\w+) in \(%\w+ to (\S+), step (%\w+)\)", r"for \1 in (\3 to \2, step \3)"),
        "rust vs python: c",
    ),
    "a mask too wide": (
        "//tests/kernels/probes:gather",
        "f32_7x100",
        _replace("less_than ", "less_than_or_equal "),
        "reads 4 bytes 0 bytes after the end of the array 'table'",
    ),
    "no mask": (
        "//tests/kernels/probes:gather",
        "f32_7x100",
        _replace(
            r"(store_ptr_tko weak %\w+, %\w+), %\w+ (token=%\w+ : [^,]*<64xptr<f32>>, tile<64xf32>), [^ ]* ",
            r"\1 \2 ",
        ),
        "the array",
    ),
    "no store": (
        "//kernels:vector_add",
        "f32_1023",
        _without("store_view_tko"),
        "rust: it does not write all of c: 1023 of 1023 elements, first [0]",
    ),
    "a store of one block only": (
        "//kernels:vector_add",
        "f32_1025",
        _replace(r"(store_view_tko weak %\w+, %\w+)\[%\w+\]", r"\1[%blockId_y]"),
        "rust: it does not write all of c: 1 of 1025 elements, first [1024]",
    ),
    "a store to an input": (
        "//kernels:vector_add",
        "f32_1024",
        _replace(
            r"(%pview_\d+ = make_partition_view) %tview_\d+ (: partition_view<tile=\(1024\), tensor)",
            r"\1 %tview \2",
        ),
        "rust: it writes to the input a",
    ),
    "a promise that does not hold": (
        "//kernels:vector_add",
        "f32_1023",
        _replace(r"bounded<0, \?>", "bounded<0, 100>"),
        "rust: assume",
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_wrong_port_is_found_out(name: str, bench: Bench) -> None:
    label, case, edit, fact = MUTATIONS[name]
    verdict = bench(label).verdict(bench(label).case(case), rust=edit)
    assert verdict["state"] == "failed"
    assert fact in verdict["reason"]


def test_an_error_on_both_sides_is_found_by_the_reference(bench: Bench) -> None:
    adder = bench("//kernels:vector_add")
    edit = _replace("addf", "mulf")
    verdict = adder.verdict(adder.case("f32_1023"), rust=edit, python=edit)
    assert verdict["rust_vs_python"]["state"] == "passed"
    assert verdict["python_vs_reference"]["state"] == "failed"
    assert verdict["rust_vs_reference"]["outputs"]["c"]["worst"]["outside"] > 1000


def test_integers_behind_the_last_argument_are_not_used(bench: Bench) -> None:
    adder = bench("//kernels:vector_add")
    more = _replace(r"\) optimization_hints", ", %more: tile<i32>, %most: tile<i64>) optimization_hints")
    assert adder.verdict(adder.case("f32_1023"), rust=more)["state"] == "passed"
    shifted = _replace(r", (%arg6: tile<ptr<f32>>)", r", %more: tile<i32>, \1")
    verdict = adder.verdict(adder.case("f32_1023"), rust=shifted)
    assert "parameter 6 of the entry is a i32, its argument an address" in verdict["reason"]
    other = _replace(r"\) optimization_hints", ", %more: tile<f32>) optimization_hints")
    verdict = adder.verdict(adder.case("f32_1023"), rust=other)
    assert "a parameter of type f32 behind the last argument" in verdict["reason"]


def test_what_cannot_be_interpreted_is_not_passed(bench: Bench) -> None:
    adder = bench("//kernels:vector_add")
    case = adder.case("f32_1023")
    verdict = adder.verdict(case, rust=lambda _: "")
    assert (verdict["state"], verdict["reason"]) == ("not-applicable", "vector_add has no port")
    verdict = adder.verdict(case, python=lambda _: "")
    assert (verdict["state"], verdict["reason"]) == ("not-applicable", "vector_add does not compile")
    verdict = adder.verdict(adder.case(f"f32_{1 << 24}"))
    assert verdict["reason"].startswith("too large for the interpreter: its arrays have 201326592 bytes")


def test_an_endless_program_is_too_large(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_test, "BUDGET", 10_000_000)
    collatz = bench("//tests/kernels/probes:collatz")
    endless = _replace("cmpi greater_than ", "cmpi greater_than_or_equal ")
    verdict = collatz.verdict(collatz.case("n_5"), rust=endless)
    assert verdict["state"] == "not-applicable"
    assert "rust needs more than" in verdict["reason"]


def test_a_test_that_notices_nothing_fails(bench: Bench) -> None:
    """In place, on data that the kernel does not change."""
    adder = bench("//kernels:vector_add")
    ones = {"kind": "array", "dtype": "f32", "shape": [100], "fill": {"kind": "constant", "value": 1.0}}
    zeros = {**ones, "fill": {"kind": "constant", "value": 0.0}}
    case = _case(adder, [ones, zeros, {**ones, "role": "inout"}, {"kind": "const", "value": 1024}])
    verdict = adder.verdict(case)
    assert verdict["controls"]["state"] == "failed"
    assert "a kernel that does nothing passes" in verdict["reason"]


def test_without_a_reference_the_sides_are_compared(bench: Bench) -> None:
    adder = bench("//kernels:vector_add")
    verdict = adder.verdict(adder.case("f32_1023"), reference=None)
    assert verdict["state"] == "passed"
    assert verdict["rust_vs_reference"]["state"] == "not-applicable"


def test_a_bound_may_be_widened(bench: Bench) -> None:
    adder = bench("//kernels:vector_add").with_reference(
        "def vector_add(xp, *, a, b):\n    return a + b + 1\n"
    )
    case = adder.case("f32_1023")
    assert adder.verdict(case)["state"] == "failed"
    assert adder.verdict(case, bounds={"absolute": 1.5})["state"] == "passed"


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("def vector_sub(xp, *, a, b):\n    return a - b\n", "the file has no function 'vector_add'"),
        (
            "def vector_add(xp, *, a, b):\n    return a[:5]\n",
            r"other_reference.py:1: .*shape \(5,\) for the output c of",
        ),
        ("def vector_add(xp, *, a, b):\n    return a, b\n", "the reference returns 2 arrays"),
        ("def vector_add(xp, *, a, b):\n    return a @ b.T @ 1\n", "other_reference.py:2: kernel error: "),
        ("def vector_add(xp, *, a, d):\n    return a\n", "missing 1 required keyword-only argument: 'd'"),
        ("def vector_add(:\n", "SyntaxError"),
    ],
)
def test_a_broken_reference_is_an_error_at_its_line(text: str, fact: str, bench: Bench) -> None:
    adder = bench("//kernels:vector_add").with_reference(text)
    with pytest.raises(DiagnosticError, match=fact):
        adder.verdict(adder.case("f32_1023"))


def test_several_steps_share_their_arrays(bench: Bench) -> None:
    adder = bench("//kernels:vector_add").with_reference(
        "def vector_add(xp, *, a, b, d, TILE):\n    assert TILE == 1024\n    return a + b + d\n"
    )
    array = {"kind": "array", "dtype": "f32", "shape": [1000]}
    names = ("a", "b", "d")
    case = read_case(
        {
            "kind": "case",
            "name": "twice",
            "arrays": dict.fromkeys(names, array)
            | {"part": {**array, "role": "scratch"}, "c": {**array, "role": "out"}},
            "steps": [
                {"kernel": "vector_add", "args": [*arguments, {"kind": "const", "value": 1024}]}
                for arguments in (("a", "b", "part"), ("part", "d", "c"))
            ],
        }
    )
    assert adder.verdict(case)["state"] == "passed"


def test_strides_offsets_and_aliases(bench: Bench) -> None:
    adder = bench("//kernels:vector_add")
    shifted = {"kind": "array", "dtype": "f32", "shape": [100], "strides": [3], "offset": 5}
    same = {"kind": "array", "dtype": "f32", "shape": [100], "strides": [3], "offset": 5, "alias_of": 0}
    output = {"kind": "array", "dtype": "f32", "shape": [100], "role": "out", "strides": [2], "offset": 1}
    case = _case(adder, [shifted, same, output, {"kind": "const", "value": 64}])
    twice = adder.with_reference(
        "def vector_add(xp, *, a, b):\n    assert (a == b).all()\n    return 2 * a\n"
    )
    assert twice.verdict(case)["state"] == "passed"


def test_inputs_may_come_from_a_function(bench: Bench) -> None:
    adder = bench("//kernels:vector_add")
    (adder.folder / "made.py").write_text(
        "def make(xp, case, seed):\n    return {'arg0': xp.zeros(1023), 'arg1': xp.arange(1023.0)}\n"
    )
    verdict = adder.verdict(adder.case("f32_1023"), inputs="made.py")
    assert verdict["state"] == "passed"
    assert verdict["python_vs_reference"]["outputs"]["c"]["worst"]["got"] in range(1023)


def test_a_stated_grid_must_agree_with_the_formula(bench: Bench) -> None:
    adder = bench("//kernels:vector_add")
    case = adder.case("f32_1025")
    wrong = case.model_copy(update={"steps": (case.steps[0].model_copy(update={"grid": (3,)}),)})
    with pytest.raises(DiagnosticError, match=r"states the grid \(3,\), the formula gives \(2,\)"):
        adder.verdict(wrong)


def test_the_verdict_has_the_same_bytes_every_time(bench: Bench) -> None:
    softmax = bench("//kernels:softmax")
    seen = set()
    for _ in range(2):
        softmax.verdict(softmax.case("f16_64x1000"))
        seen.add((softmax.folder / "verdict.json").read_bytes())
    assert len(seen) == 1


def test_an_unknown_schema_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps({"schema": 99, "cases": []}))
    with inside(tmp_path), pytest.raises(DiagnosticError, match="this tool reads 1"):
        cpu_test.main(["--plan", "plan.json", "--out", "verdict.json"])


def _case(adder: Operator, arguments: list[object]) -> Case:
    return read_case({"kind": "launch", "name": "made", "kernel": "vector_add", "args": arguments})
