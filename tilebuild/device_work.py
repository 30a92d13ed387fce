"""GPU work of targets: which of it lacks a verdict, how it is run, here or elsewhere, and how it is recorded.

Composes the session, the bundles of the GPU library and the ledger. One code path: work always travels as a
bundle, and runs as a command in it, on this machine as on any other.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from tilebuild.action import Artifact
from tilebuild.device_class import DeviceClass
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError
from tilebuild.events import PhaseStarted
from tilebuild.execution.lock import locked
from tilebuild.gpu import __main__ as runner
from tilebuild.gpu.bundle import write_bundle
from tilebuild.gpu.plan import BENCHMARK, PLAN_FILE, STAGES, TEST
from tilebuild.ledger import FOLDER, Ledger, LedgerError, missing_entries
from tilebuild.providers import GpuPlan, Port
from tilebuild.report import Report, TargetResult
from tilebuild.rule import Providers
from tilebuild.session.request import Request
from tilebuild.session.session import Session

RESULTS = "results.json"
_GPU_PATIENCE_S = 1800.0
#: The derived target that stands for a stage.
_TEST_OF = {TEST: ".gpu_test", BENCHMARK: ".benchmark"}
_RAN = (runner.OK, runner.FAILED, runner.INCOMPLETE)
_RESULT_FIELDS = ("schema", "device", "rows")
_ROW_FIELDS = ("target", "case", "stage", "key", "state")


@dataclass
class Work:
    """What the targets of a request have for one device class; `files` by their names in a bundle."""

    device: DeviceClass
    plans: list[Mapping[str, Any]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)

    def missing(self, ledger: Ledger, request: Request | None = None) -> list[dict[str, Any]]:
        """Entries of a plan for what has no verdict, as far as a request is about it.

        Raises DiagnosticError when the ledger cannot be read.
        """
        try:
            entries = [entry for plan in self.plans for entry in missing_entries(plan, ledger)]
        except LedgerError as error:
            raise _error(str(error), "restore the file from version control") from error
        return [e for entry in entries if (e := _asked(entry, request))["keys"]]

    def everything(self) -> list[dict[str, Any]]:
        """Entries for all cases that can run, those that have verdicts too."""
        return [case["entry"] for plan in self.plans for case in plan["cases"] if case["entry"] is not None]


@dataclass(frozen=True)
class Recorded:
    """What came of importing results: rows in the ledger, rows that failed and are not, rows of old cases
    that were dropped.
    """

    rows: Sequence[Mapping[str, Any]]
    refused: Sequence[Mapping[str, Any]]
    dropped: int = 0


def ledger_of(session: Session) -> Ledger:
    return Ledger(session.workspace.root / FOLDER)


def gather(session: Session, request: Request) -> tuple[list[Work], list[str]]:
    """Makes the plans of all targets of a request, and brings the files that they name; needs no GPU.

    Also returns the targets that do not build, and so have no plan.
    """
    providers, content = session.make(request, _wanted)
    works: dict[DeviceClass, Work] = {}
    unbuilt = []
    for label, provided in providers.items():
        for item in _plans(provided):
            if item.plan not in content:
                unbuilt.append(str(label))
                continue
            work = works.setdefault(item.device, Work(item.device))
            plan = json.loads(content[item.plan])
            if plan not in work.plans:
                work.plans.append(plan)
                work.files |= _named(item, content)
    return list(works.values()), list(dict.fromkeys(unbuilt))


def run_missing(session: Session, request: Request, python: str) -> list[Mapping[str, Any]]:
    """Runs here what a request lacks and records it. Returns the rows that failed.

    What this machine is no device for stays as it is, and so does what does not build.
    """
    if request.dry_run or not _asks(request):
        return []
    failed: list[Mapping[str, Any]] = []
    for work in gather(session, request)[0]:
        entries = work.missing(ledger_of(session), request)
        results = _run_here(session, python, work, entries) if entries else None
        if results is not None:
            failed += record(session, results).refused
    return failed


def with_failures(report: Report, rows: Sequence[Mapping[str, Any]]) -> Report:
    """The report with what failed on the device just now: nothing records it, so no verdict file says it."""
    return replace(report, targets=tuple(_with_failures(target, rows) for target in report.targets))


def _with_failures(target: TargetResult, rows: Sequence[Mapping[str, Any]]) -> TargetResult:
    found = [row for row in rows if target.label in (row["target"], row["target"] + _TEST_OF[row["stage"]])]
    if not found or target.verdict is None:
        return target
    failed = {(row["case"], row["stage"]) for row in found}
    why = "; ".join(f"{row['case']}: {', '.join(row['reasons'])}" for row in found)
    verdict = {
        **target.verdict,
        "ok": False,
        "pending": [item for item in target.pending if (item["case"], item["stage"]) not in failed],
        "gates": [*target.verdict["gates"], {"gate": "on the GPU", "state": "failed", "why": why}],
    }
    return replace(target, ok=False, verdict=verdict, problem=target.problem or f"on the GPU: {why}")


def run_bundle(python: str, bundle: Path, results: Path, budget_s: float) -> int:
    """Runs a bundle's own runner; its words go to standard error. Returns its exit code."""
    command = [python, str(bundle / "runner"), "--out", str(results), "--budget", str(budget_s)]
    return subprocess.run(command, stdout=sys.stderr).returncode


def read_results(path: Path) -> Mapping[str, Any]:
    """A result file, as far as its form goes. Raises DiagnosticError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise _error(f"{path} is no result file of a bundle: {error}") from error
    if not isinstance(document, dict) or not all(name in document for name in _RESULT_FIELDS):
        raise _error(f"{path} is no result file of a bundle: it lacks {', '.join(_RESULT_FIELDS)}")
    if document["device"] is None:
        raise _error(f"{path} holds no results: its run ended before a device was found")
    try:
        device = DeviceClass.from_json(document["device"])
        DeviceClass.parse(f"{device.name}/{device.compute_capability}/{device.sm_count}")
    except (KeyError, TypeError, ValueError) as error:
        raise _error(f"{path} names no device class: {error}") from error
    for position, row in enumerate(document["rows"]):
        if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in _ROW_FIELDS):
            raise _error(f"{path}: row {position} lacks one of {', '.join(_ROW_FIELDS)}")
    return document


def record(session: Session, results: Mapping[str, Any]) -> Recorded:
    """Writes rows into the ledger; those of cases that a target no longer has go. Raises DiagnosticError."""
    rows, device = results["rows"], results["device"]
    ledger = ledger_of(session)
    cases = _cases(session, sorted({row["target"] for row in rows}))
    try:
        refused = ledger.add(device, rows)
        dropped = sum(ledger.keep(target, device, names) for target, names in cases.items())
    except LedgerError as error:
        raise _error(f"nothing was recorded: {error}") from error
    kept = [row for row in rows if row not in refused]
    return Recorded(kept, refused, dropped)


def export(folder: Path, work: Work, entries: Iterable[Mapping[str, Any]]) -> int:
    """Writes a bundle into a new or empty folder. Returns its size in bytes."""
    return write_bundle(folder, entries, work.files.__getitem__, work.device.to_json())


# Plans and their files


def _wanted(providers: Providers) -> list[Artifact]:
    return [a for item in _plans(providers) for a in (item.plan, *item.cubins, *item.sources)]


def _plans(providers: Providers) -> Sequence[GpuPlan]:
    found: Sequence[GpuPlan] = providers.get("GpuPlans") or ()
    return found


def _named(item: GpuPlan, content: Mapping[Artifact, bytes]) -> dict[str, bytes]:
    """The files of a plan by the names that entries use: their digests."""
    cubins = [content[a] for a in item.cubins if a in content]
    files = {f"cubins/{sha256(data).hexdigest()}.cubin": data for data in cubins}
    for artifact in item.sources:
        if artifact in content:
            data = content[artifact]
            files[f"files/{sha256(data).hexdigest()}/{Path(artifact.path).name}"] = data
    return files


def _cases(session: Session, targets: Sequence[str]) -> dict[str, list[str]]:
    """The names of the cases of each target. Raises DiagnosticError for a target that does not exist."""
    if not targets:
        return {}
    loaded = session.load(targets)
    analysis = session.analyze(loaded, loaded.roots)
    found = {}
    for label in loaded.roots:
        port: Port | None = analysis.targets[label].providers.get("Port")
        if port is not None:
            found[str(label)] = [case.name for case in port.cases]
    return found


# Which stages a request is about


def _asks(request: Request) -> bool:
    return request.verb != "build" or request.verify in ("gpu", "bench")


def _asked(entry: Mapping[str, Any], request: Request | None) -> dict[str, Any]:
    """The entry with the keys of the stages that a request is about; of all without a request."""
    stages: tuple[str, ...] = STAGES
    if request is not None and request.verb != "bench" and request.verify != "bench" and entry["identical"]:
        stages = (TEST,)
    return {**entry, "keys": {stage: key for stage, key in entry["keys"].items() if stage in stages}}


# Running


def _run_here(
    session: Session, python: str, work: Work, entries: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Runs entries on this machine, one build at a time. Returns the results, or nothing where it has no such
    device. What an interrupted run of the same entries finished is not run again.
    """
    text = json.dumps(entries, sort_keys=True).encode()
    bundles = session.cache_folder / "bundles"
    folder = bundles / sha256(text).hexdigest()[:16]
    export(folder, work, entries)
    stages = sum(len(entry["keys"]) for entry in entries)
    with locked(bundles / "lock", _GPU_PATIENCE_S, lambda holder: _tell_waiting(session, holder)):
        session.observe(PhaseStarted(f"running {stages} GPU stages on {work.device}"))
        status = run_bundle(python, folder, folder / RESULTS, session.settings.gpu.budget_s)
    if status == runner.WRONG_DEVICE:
        return None
    if status not in _RAN:
        fact = f"the GPU work could not be run: {python} {folder}/runner ended with {status}"
        help = "it needs NumPy and CuPy, see above; gpu.runner in the settings names the Python that has them"
        raise DiagnosticError(Diagnostic(fact, Blame.TOOLCHAIN, help=help))
    results = read_results(folder / RESULTS)
    shutil.rmtree(folder)
    return results


def _tell_waiting(session: Session, holder: str) -> None:
    session.observe(PhaseStarted(f"waiting for the GPU, which another build uses ({holder})"))


def is_bundle(folder: Path) -> bool:
    return (folder / PLAN_FILE).is_file() and (folder / "runner").is_dir()


def _error(fact: str, help: str = "") -> DiagnosticError:
    return DiagnosticError(Diagnostic(fact, Blame.BUILD_FILE, help=help))
