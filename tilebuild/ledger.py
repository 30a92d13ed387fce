"""The committed tier of the cache: GPU verdicts as reviewable JSON. Knows no target graph and no GPU.

One file per target and device class, `cache/<package>/<target>/<device>.json`; one row per case and stage,
sorted, the key a field of each. Rows are added whole and never edited; `problems` derives every verdict
again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tilebuild.measurement as measurement
from tilebuild.device_class import DeviceClass

SCHEMA = 1
FOLDER = "cache"
#: What may be recorded: a negative test is a fact of the moment, to be repaired and not to be kept.
_RECORDED = ("passed", "not-applicable", "measured")


class LedgerError(Exception):
    """A ledger file that cannot be read; the text names it."""


class Ledger:
    """The ledger of a workspace. Files are read when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Path, dict[tuple[str, str], Mapping[str, Any]]] = {}

    def find(
        self, target: str, device: Mapping[str, Any], case: str, stage: str, key: str
    ) -> Mapping[str, Any] | None:
        """The recorded row whose key matches. Raises `LedgerError`."""
        row = self._rows(self.path(target, device)).get((case, stage))
        return row if row is not None and row["key"] == key else None

    def add(self, device: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Records rows, replacing those of the same case and stage. Returns those that it does not record.

        Raises `LedgerError` for a row that contradicts itself.
        """
        refused = []
        changed: dict[Path, dict[tuple[str, str], Mapping[str, Any]]] = {}
        for row in rows:
            if found := measurement.problems(row):
                raise LedgerError(f"{row.get('target')} {row.get('case')}: {'; '.join(found)}")
            if row["state"] not in _RECORDED:
                refused.append(row)
                continue
            path = self.path(row["target"], device)
            changed.setdefault(path, dict(self._rows(path)))[(row["case"], row["stage"])] = row
        for path, content in changed.items():
            self._write(path, device, content)
        return refused

    def keep(self, target: str, device: Mapping[str, Any], cases: Iterable[str]) -> int:
        """Drops the rows of cases that the target no longer has. Returns how many."""
        path, kept = self.path(target, device), set(cases)
        rows = self._rows(path)
        left = {key: row for key, row in rows.items() if key[0] in kept}
        if len(left) < len(rows):
            self._write(path, device, left)
        return len(rows) - len(left)

    def path(self, target: str, device: Mapping[str, Any]) -> Path:
        """Where the rows of a target (`//package:name`) for a device class lie."""
        return self._folder / file_of(target, DeviceClass.from_json(device))

    def counts(self) -> tuple[int, int]:
        """How many files and rows the ledger has, of those that can be read."""
        paths = list(self._folder.rglob("*.json"))
        return len(paths), sum(len(self._files.get(path, ())) for path in paths)

    def problems(self) -> Iterator[tuple[Path, str, str]]:
        """Everything that does not hold in the whole ledger: file, row, fact."""
        for path in sorted(self._folder.rglob("*.json")):
            try:
                rows = self._rows(path)
            except LedgerError as error:
                yield path, "", str(error)
                continue
            for (case, stage), row in rows.items():
                for fact in measurement.problems(row):
                    yield path, f"{case} {stage}", fact
                if self.path(row["target"], _document(path)["device"]) != path:
                    yield path, f"{case} {stage}", f"the row is of {row['target']} and lies in another file"
            if path.read_text(encoding="utf-8") != render(_document(path)["device"], rows.values()):
                yield path, "", "the file is not as it was written: rows out of order, or another layout"

    def _rows(self, path: Path) -> dict[tuple[str, str], Mapping[str, Any]]:
        if path not in self._files:
            self._files[path] = _read(path) if path.exists() else {}
        return self._files[path]

    def _write(
        self, path: Path, device: Mapping[str, Any], rows: Mapping[tuple[str, str], Mapping[str, Any]]
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        beside.write_text(render(device, rows.values()), encoding="utf-8")
        beside.replace(path)
        self._files[path] = dict(rows)


@dataclass(frozen=True)
class Stage:
    """What is known of one stage of one case on one device class: its row, or why there is none.

    `reason` says why the case cannot run; `doubt` why a row that was found is not believed.
    """

    target: str
    case: str
    stage: str
    device: Mapping[str, Any]
    key: str
    row: Mapping[str, Any] | None
    reason: str = ""
    doubt: str = ""

    @property
    def state(self) -> str:
        """The row's state, `pending` without a row, `not-applicable` for a case that cannot run."""
        if self.row is not None:
            return str(self.row["state"])
        return "not-applicable" if self.reason else "pending"


def stages(planned: Mapping[str, Any], ledger: Ledger) -> list[Stage]:
    """Every stage of a target on a device class, from what `gpu_plan` wrote. Raises `LedgerError`."""
    target, device = planned["target"], planned["device"]
    found = []
    for case in planned["cases"]:
        if case["entry"] is None:
            found.append(Stage(target, case["name"], "gpu-test", device, "", None, case["reason"]))
            continue
        for stage, key in case["entry"]["keys"].items():
            row = ledger.find(target, device, case["name"], stage, key)
            doubt = "; ".join(measurement.problems(row)[:1]) if row is not None else ""
            found.append(Stage(target, case["name"], stage, device, key, None if doubt else row, doubt=doubt))
    return found


def missing_entries(planned: Mapping[str, Any], ledger: Ledger) -> list[dict[str, Any]]:
    """The entries of a plan that have no row yet, with the keys of the missing stages only."""
    absent = {(s.case, s.stage): s.key for s in stages(planned, ledger) if s.state == "pending"}
    entries = []
    for case in planned["cases"]:
        keys = {stage: key for (name, stage), key in absent.items() if name == case["name"]}
        if keys:
            entries.append({**case["entry"], "keys": keys})
    return entries


def file_of(target: str, device: DeviceClass) -> str:
    """The ledger file of a target and a device class, inside the ledger's folder."""
    package, _, name = target.removeprefix("//").rpartition(":")
    return "/".join(part for part in (package, name, f"{device.slug}.json") if part)


def render(device: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> str:
    """The text of a ledger file: one line per field of a row, rows sorted by case and stage."""
    ordered = sorted(rows, key=lambda row: (row["case"], row["stage"]))
    blocks = [",\n".join(f"   {_line(key, row[key])}" for key in sorted(row)) for row in ordered]
    body = ",\n".join(f"  {{\n{block}\n  }}" for block in blocks)
    rows_text = f"[\n{body}\n ]" if blocks else "[]"
    return f'{{\n {_line("schema", SCHEMA)},\n {_line("device", dict(device))},\n "rows": {rows_text}\n}}\n'


def _line(key: str, value: object) -> str:
    return f"{json.dumps(key)}: {json.dumps(value, sort_keys=True, ensure_ascii=False)}"


def _document(path: Path) -> Mapping[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise LedgerError(f"{path}: schema {document['schema']}, this version reads {SCHEMA}")
        DeviceClass.from_json(document["device"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LedgerError(f"{path}: {type(error).__name__}: {error}") from error
    result: Mapping[str, Any] = document
    return result


def _read(path: Path) -> dict[tuple[str, str], Mapping[str, Any]]:
    try:
        return {(row["case"], row["stage"]): row for row in _document(path)["rows"]}
    except (KeyError, TypeError) as error:
        raise LedgerError(f"{path}: a row lacks {error}") from error
