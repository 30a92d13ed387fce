"""Result files that are none, and commands about bundles in a workspace without a kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.space import Space
from tilebuild.device_work import read_results
from tilebuild.diagnostics import DiagnosticError

DEVICE = {"name": "NVIDIA Fake", "compute_capability": "9.0", "sm_count": 4}
ROW = {"target": "//k:op", "case": "a", "stage": "gpu-test", "key": "0", "state": "passed"}
WRONG: dict[str, tuple[Any, str]] = {
    "no object": ([], "it lacks schema, device, rows"),
    "no rows": ({"schema": 1, "device": DEVICE}, "it lacks schema, device, rows"),
    "no device yet": ({"schema": 1, "device": None, "rows": []}, "ended before a device was found"),
    "half a device": ({"schema": 1, "device": {"name": "A"}, "rows": []}, "names no device class"),
    "a path": ({"schema": 1, "device": DEVICE | {"compute_capability": "../x"}, "rows": []}, "device class"),
    "no row": ({"schema": 1, "device": DEVICE, "rows": ["x"]}, "row 0 lacks one of target"),
    "half a row": (
        {"schema": 1, "device": DEVICE, "rows": [ROW, {"case": "a"}]},
        "row 1 lacks one of target",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_of_another_form(tmp_path: Path, name: str) -> None:
    document, fact = WRONG[name]
    file = tmp_path / "results.json"
    file.write_text(json.dumps(document))
    with pytest.raises(DiagnosticError) as caught:
        read_results(file)
    assert fact in str(caught.value)


def results(space: Space, target: str) -> str:
    file = space.folder / "results.json"
    rows = [ROW | {"target": target}]
    file.write_text(json.dumps({"schema": 1, "device": DEVICE, "rows": rows}))
    return str(file)


@pytest.mark.parametrize("target", ["//nowhere:op", "//text:cuont", "//../..:x", "x y"])
def test_rows_of_targets_that_do_not_exist(space: Space, target: str) -> None:
    done = space.run("bundle", "import", results(space, target))
    assert done.code == 7, done.text
    assert "Traceback" not in done.text
    assert not (space.root / "cache").exists()


def test_a_row_that_is_not_sealed(space: Space) -> None:
    done = space.run("bundle", "import", results(space, "//text:count"))
    assert done.code == 7
    assert "nothing was recorded: //text:count a: the row was changed" in done.err


def test_an_export_without_a_required_device(space: Space) -> None:
    done = space.run("bundle", "export", "//text/...", "--out", str(space.folder / "b"))
    assert done.code == 7
    assert "no device class is required of these targets" in done.err
    assert "gpu.devices" in done.err


def test_an_empty_ledger_holds(space: Space) -> None:
    assert "verify: 0 verdicts in 0 files" in space.ok("verify").out


def test_a_report_without_operators(space: Space) -> None:
    page = space.folder / "r.html"
    assert "0 operators" in space.ok("report", "--out", str(page)).out
    assert page.read_text().startswith("<!doctype html>")


def test_a_benchmark_of_nothing(space: Space) -> None:
    assert space.run("bench", "//text/...").code == 4
