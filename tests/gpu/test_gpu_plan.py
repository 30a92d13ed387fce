"""The tool that plans GPU work, and what the ledger makes of its plans."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.fake import DEVICE_CLASS, fake_cubin
from tests.gpu.planning import REFERENCE, SIZES, device, scale, vector_case
from tilebuild.gpu.bundle import write_bundle
from tilebuild.gpu.plan import read_plan
from tilebuild.gpu.runner import Results, run_plan
from tilebuild.ledger import Ledger, missing_entries, stages
from tilebuild.port import Choice, InstanceVerdict, RungVerdict
from tilebuild.tools import gpu_plan


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What an action of the tool finds: two cases, of which the second is also a benchmark."""
    evidence = {"s1/sm_90": InstanceVerdict("same-machine-code", "same")}
    rung = RungVerdict("typed", "typed", 1, evidence, {}, "")
    parameters = [
        *({"name": name, "kind": "array", "dtype": "float32", "ndim": 1} for name in ("x", "y")),
        {"name": "factor", "kind": "scalar", "dtype": "float32"},
        {"name": "TILE", "kind": "constant", "value": 32},
    ]
    step = {"python": "p.cubin", "rust": "r.cubin", "interface": "interface.json"}
    step |= {"choice": "choice.json", "instance": "s1/sm_90"}
    request = {
        "schema": 1,
        "target": "//kernels:scale",
        "operator": "scale",
        "device": DEVICE_CLASS,
        "reference": "scale_reference.py",
        "inputs": None,
        "bounds": {},
        "grids": {"scale": ["cdiv(x.shape[0], TILE)"]},
        "cases": [
            {"case": vector_case(100), "steps": [step]},
            {"case": vector_case(64, benchmark=True), "steps": [step]},
        ],
    }
    (tmp_path / "p.cubin").write_bytes(fake_cubin("scale", SIZES))
    (tmp_path / "r.cubin").write_bytes(fake_cubin("scale_entry", SIZES))
    (tmp_path / "interface.json").write_text(json.dumps({"parameters": parameters}))
    (tmp_path / "choice.json").write_text(json.dumps(Choice("scale", rung, ()).to_json()))
    (tmp_path / "scale_reference.py").write_bytes(REFERENCE)
    (tmp_path / "request.json").write_text(json.dumps(request))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan(folder: Path) -> dict[str, Any]:
    assert gpu_plan.main(["--request", "request.json", "--out", "gpu_plan.json"]) == 0
    found: dict[str, Any] = json.loads((folder / "gpu_plan.json").read_text())
    return found


def test_entries_are_complete(folder: Path) -> None:
    first, second = plan(folder)["cases"]
    assert first["entry"]["steps"][0]["grid"] == [4, 1, 1]
    assert first["entry"]["identical"]
    assert list(first["entry"]["keys"]) == ["gpu-test"]
    assert sorted(second["entry"]["keys"]) == ["benchmark", "gpu-test"]
    assert len(first["sizes"]) == 3
    assert plan(folder) == plan(folder)


def test_from_pending_to_green(folder: Path, tmp_path: Path) -> None:
    planned, ledger = plan(folder), Ledger(tmp_path / "cache")
    assert [stage.state for stage in stages(planned, ledger)] == ["pending"] * 3
    entries = missing_entries(planned, ledger)
    contents = {
        name: next(path.read_bytes() for path in folder.iterdir() if path.is_file() and in_name(path, name))
        for entry in planned["cases"]
        for name in entry["sizes"]
    }
    write_bundle(folder / "bundle", entries, contents.__getitem__, DEVICE_CLASS)
    work = read_plan(folder / "bundle")
    results = Results(folder / "results.json", work.digest)
    run_plan(folder / "bundle", work, results, device(scale()), 1.0, lambda: 0.0)
    assert ledger.add(DEVICE_CLASS, results.rows.values()) == []

    fresh = Ledger(tmp_path / "cache")
    assert sorted(s.state for s in stages(planned, fresh)) == ["measured", "passed", "passed"]
    assert missing_entries(planned, fresh) == []

    (folder / "scale_reference.py").write_bytes(b"# a comment\n" + REFERENCE)
    assert {s.state for s in stages(plan(folder), fresh)} == {"measured", "passed"}
    (folder / "scale_reference.py").write_bytes(REFERENCE.replace(b"* factor", b"* factor * 1"))
    changed = {(s.case, s.stage): s.state for s in stages(plan(folder), fresh)}
    assert changed == {
        ("f32_100", "gpu-test"): "pending",
        ("f32_64", "gpu-test"): "pending",
        ("f32_64", "benchmark"): "measured",
    }


def in_name(path: Path, name: str) -> bool:
    return sha256(path.read_bytes()).hexdigest() in name


def test_a_case_that_cannot_run_says_why(folder: Path) -> None:
    (folder / "r.cubin").write_bytes(b"")
    planned = plan(folder)
    assert planned["cases"][0]["reason"] == "there is no rust cubin of s1/sm_90"
    assert [s.state for s in stages(planned, Ledger(folder / "cache"))] == ["not-applicable"] * 2
    (folder / "r.cubin").write_bytes(fake_cubin("scale_entry", (8, 8)))
    assert "takes parameters of [8, 8] bytes" in plan(folder)["cases"][0]["reason"]
