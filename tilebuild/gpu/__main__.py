"""Runs the bundle around this file, or the one named: `python3 runner --budget 600 --out results.json`.

A worker process runs the cases and writes the result file after each. This process watches it: a case that
crashes the worker or takes too long becomes a failed row, and a new worker goes on behind it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

try:
    from tilebuild.gpu.device import DeviceError
    from tilebuild.gpu.plan import PLAN_FILE, PlanError, read_plan
    from tilebuild.gpu.runner import Results, WrongDevice, give_up, run_plan
except ModuleNotFoundError as error:
    print(f"{sys.executable} needs NumPy and CuPy: {error}", file=sys.stderr)
    raise SystemExit(36) from None

OK, FAILED, INCOMPLETE, BAD_COMMAND_LINE, WRONG_DEVICE, NO_DEVICE, LOST_DEVICE = 0, 3, 5, 2, 4, 36, 75
_POLL_S = 0.2


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 0 when everything ran and nothing failed, 3 when something failed, 4 on a device of another
    class, 5 when the budget ran out.
    """
    arguments = _parse(sys.argv[1:] if argv is None else argv)
    try:
        return _work(arguments) if arguments.worker else _watch(arguments)
    except (PlanError, WrongDevice) as error:
        print(error, file=sys.stderr)
        return WRONG_DEVICE if isinstance(error, WrongDevice) else BAD_COMMAND_LINE
    except DeviceError as error:
        print(error, file=sys.stderr, flush=True)
        if error.fatal and arguments.worker:
            os._exit(LOST_DEVICE)  # everything that CuPy would free now fails, and it would say so for each
        return NO_DEVICE


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="runner", description=__doc__)
    around = Path(__file__).resolve().parent.parent
    parser.add_argument("--bundle", type=Path, default=around, help="folder that holds plan.json")
    parser.add_argument(
        "--out", type=Path, default=Path("results.json"), help="result file; an earlier one is continued"
    )
    parser.add_argument("--budget", type=float, default=600.0, help="seconds after which no case is begun")
    parser.add_argument("--case-limit", type=float, default=120.0, help="seconds that one case may take")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if not (arguments.bundle / PLAN_FILE).is_file():
        parser.error(f"{arguments.bundle} holds no {PLAN_FILE}")
    return arguments


def _work(arguments: argparse.Namespace) -> int:
    try:
        from tilebuild.gpu.cuda_device import CudaDevice
    except ImportError as error:
        raise DeviceError(f"NumPy and CuPy are needed: {error}") from error
    plan = read_plan(arguments.bundle)
    results = Results.open(arguments.out, plan.digest)
    deadline = time.monotonic() + arguments.budget
    run_plan(arguments.bundle, plan, results, CudaDevice(), deadline, time.monotonic)
    return OK


def _watch(arguments: argparse.Namespace) -> int:
    plan = read_plan(arguments.bundle)
    end = time.monotonic() + arguments.budget
    recorded = -1
    while True:
        status, fact = _run_worker(arguments, plan.digest, end)
        results = Results.open(arguments.out, plan.digest)
        if results.running is not None:
            give_up(arguments.bundle, plan, results, fact)
        elif status not in (OK, LOST_DEVICE):
            return status
        if status == OK or time.monotonic() >= end:
            return _report(results)
        if len(results.rows) == recorded:
            return status  # the device fails before any case: another worker would do no better
        recorded = len(results.rows)


def _run_worker(arguments: argparse.Namespace, plan: str, end: float) -> tuple[int, str]:
    """Runs a worker to its end, or to that of the case it is stuck in. Returns its status and what
    happened.
    """
    command = [sys.executable, str(Path(__file__).resolve()), "--worker"]
    command += ["--bundle", str(arguments.bundle), "--out", str(arguments.out)]
    worker = subprocess.Popen([*command, "--budget", str(max(end - time.monotonic(), 0.0))])
    current, since = None, time.monotonic()
    while worker.poll() is None:
        time.sleep(_POLL_S)
        running = Results.open(arguments.out, plan).running
        if running != current:
            current, since = running, time.monotonic()
        if current is not None and time.monotonic() - since > arguments.case_limit:
            worker.kill()
            worker.wait()
            return LOST_DEVICE, f"the case did not end within {arguments.case_limit:g} s"
    return worker.returncode, f"the runner died in this case (status {worker.returncode})"


def _report(results: Results) -> int:
    counts: dict[str, int] = {}
    for row in results.rows.values():
        counts[row["state"]] = counts.get(row["state"], 0) + 1
        detail = "; ".join(row["reasons"]) or row.get("word", "")
        print(f"{row['state']:>14}  {row['stage']:<9}  {row['target']} {row['case']}  {detail}".rstrip())
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "no rows", end="")
    print("" if results.complete else "; not everything was run")
    if counts.get("failed"):
        return FAILED
    return OK if results.complete else INCOMPLETE


if __name__ == "__main__":
    sys.exit(main())
