"""The ledger finds what it recorded, and any edit of it."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.fake import DEVICE_CLASS
from tests.gpu.planning import bundle, device, scale, vector_case
from tilebuild.device_class import DeviceClass
from tilebuild.gpu.runner import Results, run_plan
from tilebuild.ledger import Ledger, LedgerError, stages
from tilebuild.measurement import digest, problems

TARGET = "//kernels:scale"
Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    folder = tmp_path_factory.mktemp("run")
    plan = bundle(folder, [vector_case(n) for n in (100, 7)], ("gpu-test", "benchmark"))
    results = Results(folder / "r.json", plan.digest)
    run_plan(folder, plan, results, device(scale()), 1.0, lambda: 0.0)
    return list(results.rows.values())


@pytest.fixture
def ledger(tmp_path: Path, rows: list[Row]) -> Ledger:
    found = Ledger(tmp_path / "cache")
    assert found.add(DEVICE_CLASS, rows) == []
    return found


def test_one_file_per_target_and_device_class(ledger: Ledger, tmp_path: Path) -> None:
    path = ledger.path(TARGET, DEVICE_CLASS)
    assert path.relative_to(tmp_path).as_posix() == "cache/kernels/scale/nvidia-fake-cc9.0-4sm.json"
    document = json.loads(path.read_text())
    assert document["device"] == DEVICE_CLASS
    order = [(row["case"], row["stage"]) for row in document["rows"]]
    assert order == sorted(order)
    assert max(len(line) for line in path.read_text().splitlines()) < 5000
    assert list(Ledger(tmp_path / "cache").problems()) == []


def test_a_row_is_found_by_its_key_alone(ledger: Ledger, rows: list[Row]) -> None:
    row = rows[0]
    where = (TARGET, DEVICE_CLASS, row["case"], row["stage"])
    assert ledger.find(*where, row["key"]) == row
    assert ledger.find(*where, "0" * 64) is None
    assert ledger.find(TARGET, DEVICE_CLASS | {"sm_count": 5}, *where[2:], row["key"]) is None


def test_recording_again_changes_nothing(ledger: Ledger, rows: list[Row]) -> None:
    path = ledger.path(TARGET, DEVICE_CLASS)
    before = path.read_bytes()
    ledger.add(DEVICE_CLASS, reversed(rows))
    assert path.read_bytes() == before
    assert ledger.keep(TARGET, DEVICE_CLASS, ["f32_7"]) == 2
    assert ledger.keep(TARGET, DEVICE_CLASS, ["f32_7"]) == 0


def test_failures_are_not_recorded(tmp_path: Path) -> None:
    def wrong(x: Any, y: Any) -> None:
        y[64] = 77.0

    plan = bundle(tmp_path, [vector_case()])
    results = Results(tmp_path / "r.json", plan.digest)
    run_plan(tmp_path, plan, results, device(scale(wrong)), 1.0, lambda: 0.0)
    ledger = Ledger(tmp_path / "cache")
    assert len(ledger.add(DEVICE_CLASS, results.rows.values())) == 1
    assert not (tmp_path / "cache").exists()


def test_every_edited_digit_is_found(ledger: Ledger, tmp_path: Path) -> None:
    path = ledger.path(TARGET, DEVICE_CLASS)
    text = path.read_text()
    places = [match.start() for match in re.finditer(r"\d", text)]
    for place in places[:: max(1, len(places) // 150)]:
        digit = str((int(text[place]) + 1) % 10)
        path.write_text(text[:place] + digit + text[place + 1 :])
        assert list(Ledger(tmp_path / "cache").problems()), text[place - 40 : place + 20]


def forge(row: Row, edit: Callable[[Row], None]) -> list[str]:
    """The problems of a row that was edited by somebody who also wrote a new digest."""
    forged = copy.deepcopy(row)
    edit(forged)
    return problems(forged | {"digest": digest(forged)})


def rust(row: Row) -> Row:
    found: Row = row["outputs"][0]["rust"]
    return found


TEST_EDITS: dict[str, Callable[[Row], None]] = {
    "state": lambda row: row.update(state="failed"),
    "a wider bound": lambda row: rust(row)["worst"].update(bound=1.0),
    "a looser formula": lambda row: row["outputs"][0]["bound"].update(c=9.0),
    "another want": lambda row: rust(row)["worst"].update(want=rust(row)["worst"]["want"] * 1.0000001),
    "no float32": lambda row: rust(row)["worst"].update(got=rust(row)["worst"]["got"] + 1e-12),
    "far off": lambda row: rust(row)["worst"].update(got=77.0),
    "other bits": lambda row: rust(row).update(sha256="0" * 64),
    "guards": lambda row: row["memory"]["rust"].update(guard_bytes=1),
    "unwritten": lambda row: rust(row).update(unwritten=3),
    "a control that passes": lambda row: row["controls"]["null"]["arg1"].update(outside=0),
    "a part left out": lambda row: row.pop("memory") and None,
    "another protocol": lambda row: row.update(protocol=0),
}


@pytest.mark.parametrize("name", TEST_EDITS)
def test_a_forged_test_row_contradicts_itself(rows: list[Row], name: str) -> None:
    row = next(row for row in rows if row["stage"] == "gpu-test")
    assert problems(row) == []
    assert forge(row, TEST_EDITS[name])


BENCHMARK_EDITS: dict[str, Callable[[Row], None]] = {
    "word": lambda row: row.update(word="faster"),
    "ratio": lambda row: row["figures"].update(ratio=0.9),
    "interval": lambda row: row["figures"].update(low=0.9),
    "times": lambda row: row.update(times=[[[t[0], t[1], t[2] * 2] for t in x] for x in row["times"]]),
    "throttled": lambda row: row["clocks"].update(throttled=["hardware thermal"]),
    "recheck": lambda row: row["recheck"].update(rust=False),
}


@pytest.mark.parametrize("name", BENCHMARK_EDITS)
def test_a_forged_benchmark_row_contradicts_itself(rows: list[Row], name: str) -> None:
    row = next(row for row in rows if row["stage"] == "benchmark")
    assert forge(row, BENCHMARK_EDITS[name])


def test_a_contradiction_is_not_recorded(ledger: Ledger, rows: list[Row]) -> None:
    with pytest.raises(LedgerError, match="digest does not match"):
        ledger.add(DEVICE_CLASS, [rows[0] | {"state": "passed", "reasons": ["x"]}])


def test_a_broken_file_is_a_problem_with_a_name(ledger: Ledger, tmp_path: Path) -> None:
    path = ledger.path(TARGET, DEVICE_CLASS)
    path.write_text(path.read_text()[:-9])
    fresh = Ledger(tmp_path / "cache")
    assert [where for where, _, _ in fresh.problems()] == [path]
    with pytest.raises(LedgerError, match="JSONDecodeError"):
        fresh.find(TARGET, DEVICE_CLASS, "f32_7", "gpu-test", "")


def test_a_row_that_does_not_hold_is_pending(ledger: Ledger, tmp_path: Path, rows: list[Row]) -> None:
    path = ledger.path(TARGET, DEVICE_CLASS)
    path.write_text(path.read_text().replace('"guard_bytes": 0', '"guard_bytes": 1', 1))
    keys = [{"name": row["case"], "entry": {"keys": {row["stage"]: row["key"]}}} for row in rows]
    planned = {"target": TARGET, "device": DEVICE_CLASS, "cases": keys}
    found = stages(planned, Ledger(tmp_path / "cache"))
    assert [s.state for s in found].count("pending") == 1
    assert "digest does not match" in next(s.doubt for s in found if s.state == "pending")


def test_device_classes_are_read_and_named() -> None:
    found = DeviceClass.parse("NVIDIA H200/9.0/132")
    assert found.slug == "nvidia-h200-cc9.0-132sm"
    assert found.runs("sm_90a")
    assert not found.runs("sm_100")
    with pytest.raises(ValueError, match="is not a device class"):
        DeviceClass.parse("H200")
