"""Cases of several steps, aliases, lists of arrays, and arrays that a target makes itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.gpu.fake import DEVICE_CLASS, FakeDevice, at, fake_cubin, numbers
from tests.gpu.planning import Kernel
from tilebuild.case import read_case
from tilebuild.gpu.bundle import Source, StepFiles, entry_of, write_bundle
from tilebuild.gpu.plan import read_plan
from tilebuild.gpu.runner import Results, run_plan

LENGTH = 40


def array(role: str, **changes: Any) -> dict[str, Any]:
    return {"kind": "array", "dtype": "f32", "shape": [LENGTH], "role": role} | changes


def run(
    folder: Path,
    case: Mapping[str, Any],
    kernels: Mapping[str, tuple[Kernel, Sequence[int], Sequence[str]]],
    reference: bytes,
    make: bytes | None = None,
) -> dict[str, Any]:
    """Runs a case whose kernels are the same on both sides. A kernel: function, parameter sizes and names."""
    document = read_case(case).to_json()
    steps = []
    for step in document["steps"]:
        _, sizes, names = kernels[step["kernel"]]
        cubin = fake_cubin(step["kernel"], sizes)
        steps.append(StepFiles((1, 1, 1), cubin, cubin, names))
    source = Source("reference.py", reference, "f")
    inputs = None if make is None else Source("inputs.py", make)
    entry, files = entry_of("//a:b", document, steps, True, source, inputs)
    entry["keys"] = {"gpu-test": "k"}
    write_bundle(folder, [entry], files.__getitem__, DEVICE_CLASS)
    plan = read_plan(folder)
    results = Results(folder / "r.json", plan.digest)
    device = FakeDevice({name: kernel for name, (kernel, _, _) in kernels.items()})
    run_plan(folder, plan, results, device, 1.0, lambda: 0.0)
    (row,) = results.rows.values()
    return row


def scale(arguments: Sequence[bytes], grid: Any) -> None:
    x, count, _, y, _, _, factor = numbers(arguments, "QiiQiif")
    at(y, "f4", count)[:] = at(x, "f4", count) * np.float32(factor)


def total(arguments: Sequence[bytes], grid: Any) -> None:
    table, rows, y, count, _ = numbers(arguments, "QiQii")
    words = at(table, "i8", 3 * rows).reshape(rows, 3)
    at(y, "f4", count)[:] = sum(at(int(row[0]), "f4", int(row[1])) for row in words)


SCALE = (scale, (8, 4, 4, 8, 4, 4, 4), ("x", "y", "factor"))
TOTAL = (total, (8, 4, 8, 4, 4), ("parts", "y"))


def test_steps_hand_on_scratch_memory(tmp_path: Path) -> None:
    case = {
        "kind": "case",
        "name": "two",
        "arrays": {"q": array("in"), "partial": array("scratch"), "o": array("out")},
        "steps": [
            {"kind": "launch", "kernel": "scale", "args": ["q", "partial", 2.0]},
            {"kind": "launch", "kernel": "scale", "args": ["partial", "o", 3.0]},
        ],
    }
    right = run(tmp_path, case, {"scale": SCALE}, b"def f(xp, *, q): return q * 6.0\n")
    assert (right["state"], right["reasons"]) == ("passed", [])
    assert [output["array"] for output in right["outputs"]] == ["o"]
    clash = run(tmp_path, case, {"scale": SCALE}, b"def f(xp, *, q, factor): return q * factor\n")
    assert clash["reasons"] == ["the reference asks for factor; there is q"]


def test_lists_of_arrays(tmp_path: Path) -> None:
    parts = {"kind": "list", "arrays": [array("in"), array("in"), array("in")]}
    case = {"kind": "launch", "name": "n", "kernel": "total", "args": [parts, array("out")]}
    row = run(tmp_path, case, {"total": TOTAL}, b"def f(xp, *, parts): return sum(parts)\n")
    assert (row["state"], row["reasons"]) == ("passed", [])


@pytest.mark.parametrize("role", ["inout", "alias"])
def test_in_place(tmp_path: Path, role: str) -> None:
    if role == "inout":
        arrays = {"x": array("inout")}
        arguments = ["x", "x", 2.0]
    else:
        arrays = {"x": array("in"), "y": array("out", alias_of="x")}
        arguments = ["x", "y", 2.0]
    case = {
        "kind": "case",
        "name": "n",
        "arrays": arrays,
        "steps": [{"kind": "launch", "kernel": "scale", "args": arguments}],
    }
    row = run(tmp_path, case, {"scale": SCALE}, b"def f(xp, *, x): return x * 2.0\n")
    assert (row["state"], row["reasons"]) == ("passed", [])
    assert row["controls"]["null"][row["outputs"][0]["array"]]["outside"] == LENGTH


def test_a_target_makes_its_own_inputs(tmp_path: Path) -> None:
    case = {"kind": "launch", "name": "n", "kernel": "scale", "args": [array("in"), array("out"), 2.0]}
    make = b"def make(xp, case, seed): return {'arg0': xp.full(case.arrays['arg0'].shape, 21.0 + seed)}\n"
    row = run(tmp_path, case, {"scale": SCALE}, b"def f(xp, *, x): return xp.full(x.shape, 42.0)\n", make)
    assert row["state"] == "passed", row["reasons"]
    wrong = run(
        tmp_path, case, {"scale": SCALE}, b"def f(xp, *, x): return x\n", b"def make(*a): return {'z': 1}"
    )
    assert "make gives z" in wrong["reasons"][0]


def test_outputs_without_elements_prove_nothing(tmp_path: Path) -> None:
    empty = {"shape": [0]}
    arguments = [array("in", **empty), array("out", **empty), 2.0]
    case = {"kind": "launch", "name": "n", "kernel": "scale", "args": arguments}
    row = run(tmp_path, case, {"scale": SCALE}, b"def f(xp, *, x): return x\n")
    assert (row["state"], row["reasons"]) == ("not-applicable", ["the outputs of the case have no elements"])
