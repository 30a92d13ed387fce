"""Plans and keys: what is in them, and what changes them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.gpu.fake import DEVICE_CLASS, fake_cubin
from tests.gpu.planning import REFERENCE, SIZES, bundle, vector_case
from tilebuild.case import read_case
from tilebuild.gpu.arguments import ArgumentError, pack, rust_slots, slots
from tilebuild.gpu.bundle import Source, StepFiles, entry_of
from tilebuild.gpu.cubin import CubinError, read_entry
from tilebuild.gpu.keys import case_key, source_digest
from tilebuild.gpu.plan import PlanError, read_plan

Entry = dict[str, Any]


def entry(rust_sizes: tuple[int, ...] = SIZES, parameters: tuple[str, ...] = ("x", "y", "s", "T")) -> Entry:
    step = StepFiles((4, 1, 1), fake_cubin("scale", SIZES), fake_cubin("e", rust_sizes), parameters)
    return entry_of("//a:b", vector_case(), [step], True, Source("r.py", REFERENCE, "scale"))[0]


def test_a_bundle_is_small(tmp_path: Path) -> None:
    bundle(tmp_path, [vector_case(n) for n in range(1, 50)])
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 1 << 20
    assert len(list((tmp_path / "cubins").iterdir())) == 2


def test_the_calling_convention() -> None:
    launch = {
        "kind": "launch",
        "name": "n",
        "kernel": "k",
        "grid": [1],
        "args": [
            {"kind": "array", "dtype": "f16", "shape": [6, 4], "strides": [8, 1], "role": "in"},
            {"kind": "list", "arrays": [{"kind": "array", "dtype": "f32", "shape": [3], "role": "in"}] * 2},
            {"kind": "array", "dtype": "i8", "shape": [2], "role": "out", "index_dtype": "i64"},
            {"kind": "const", "value": 7},
            {"kind": "scalar", "dtype": "bf16", "value": 1.5},
            *(True, 5, 1 << 40, 2.5),
        ],
    }
    case = read_case(launch).to_json()
    assert slots(case, case["steps"][0]) == [
        ("pointer", "arg0"),
        *(("i32", 6), ("i32", 4), ("i32", 8), ("i32", 1)),
        ("table", ["arg1.0", "arg1.1"]),
        ("i32", 2),
        ("pointer", "arg2"),
        *(("i64", 2), ("i64", 1)),
        ("bf16", 1.5),
        *(("bool", True), ("i32", 5), ("i64", 1 << 40), ("f32", 2.5)),
    ]
    assert slots(case, case["steps"][0], [None] * 6 + ["i64"])[-3] == ("i64", 5)
    assert pack(("bf16", 1.5), {}, {}) == b"\xc0\x3f"
    assert pack(("f32", 2.5), {}, {}) == np.float32(2.5).tobytes()
    assert pack(("bool", True), {}, {}) == b"\1"
    assert pack(("pointer", "a"), {"a": 256}, {}) == (256).to_bytes(8, "little")
    assert pack(("table", ["a"]), {}, {("a",): 512}) == (512).to_bytes(8, "little")


def test_unused_parameters_of_rust_are_filled() -> None:
    assert entry((*SIZES, 4, 4))["steps"][0]["rust"]["slots"][-2:] == [("i32", 0), ("i32", 0)]


@pytest.mark.parametrize("sizes", [(8, 4), (*SIZES, 8), (4, 8, 4, 8, 4, 4, 4)])
def test_other_parameters_are_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError, match=r"takes parameters of \["):
        entry(sizes)
    with pytest.raises(ArgumentError):
        rust_slots([("i32", 1)], ())


def test_the_number_of_parameters_must_fit() -> None:
    with pytest.raises(ArgumentError, match="3 parameters, not 4"):
        entry(parameters=("x", "y", "s"))


def test_cubins_are_read_or_refused() -> None:
    found = read_entry(fake_cubin("some_kernel", (8, 4, 1)))
    assert (found.symbol, found.sizes) == ("some_kernel", (8, 4, 1))
    for broken in (b"", b"\x7fELF", b"x" * 400):
        with pytest.raises(CubinError):
            read_entry(broken)


def test_broken_plans_are_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"plan\.json"):
        read_plan(tmp_path)
    (tmp_path / "plan.json").write_text('{"schema": 99, "cases": []}')
    with pytest.raises(PlanError, match="schema 99"):
        read_plan(tmp_path)
    (tmp_path / "plan.json").write_text('{"schema": 1, "cases": [{}]}')
    with pytest.raises(PlanError, match="case 0"):
        read_plan(tmp_path)


def keys(changed: Entry, reference: str = "r", device: dict[str, Any] = DEVICE_CLASS) -> tuple[str, str]:
    test, benchmark = (
        case_key(stage, changed, {"reference": reference}, device) for stage in ("gpu-test", "benchmark")
    )
    return test, benchmark


@pytest.mark.parametrize(
    ("edit", "both"),
    [
        (lambda e: e["case"].update(seed=1), True),
        (lambda e: e["case"]["arrays"]["arg0"].update(fill={"kind": "arange"}), True),
        (lambda e: e["steps"][0].update(grid=[5, 1, 1]), True),
        (lambda e: e["steps"][0]["rust"].update(cubin="cubins/0.cubin"), True),
        (lambda e: e.update(bounds={"L": 4.0}), False),
        (lambda e: e.update(identical=False), False),
    ],
)
def test_what_changes_a_key(edit: Callable[[Entry], None], both: bool) -> None:
    changed = copy.deepcopy(entry())
    edit(changed)
    before, after = keys(entry()), keys(changed)
    assert before[0] != after[0]
    assert (before[1] != after[1]) == both


def test_what_leaves_a_key_alone() -> None:
    changed = copy.deepcopy(entry())
    changed["case"]["benchmark"] = True
    changed["case"]["steps"][0]["benchmark"] = True
    changed["target"] = "//moved:b"
    assert keys(changed) == keys(entry())
    assert keys(entry(), reference="other")[1] == keys(entry())[1]
    assert keys(entry(), reference="other")[0] != keys(entry())[0]
    assert keys(entry(), device=DEVICE_CLASS | {"sm_count": 5}) != keys(entry())


def test_comments_do_not_change_a_source() -> None:
    plain = "def f(xp, *, x):\n    return x + 1\n"
    commented = '"""Module."""\n# comment\ndef f(xp, *, x):\n    """Doc."""\n    return (x  +  1)\n'
    assert source_digest(plain) == source_digest(commented)
    assert source_digest(plain) != source_digest(plain.replace("1", "1.0"))
    assert source_digest(plain) != source_digest(plain.replace("+", "-"))
