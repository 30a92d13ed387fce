"""Stands in for the Python of a GPU machine: `command_runner BUNDLE/runner --out FILE` runs a bundle on a
fake device whose kernels do what the operator of `tests/end_to_end/kernels.py` does.

The environment says what goes wrong: FAKE_GPU=other is a device of another class, FAKE_GPU=wrong a Rust
kernel that computes something else, FAKE_GPU=dies a process that ends after its first case.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.gpu.fake import FakeDevice, at, numbers
from tilebuild.gpu.plan import read_plan
from tilebuild.gpu.runner import Results, WrongDevice, run_plan

DEVICE = "NVIDIA Fake/9.0/4"
DEVICE_CLASS = {"compute_capability": "9.0", "name": "NVIDIA Fake", "sm_count": 4}


def double_add(arguments: Sequence[bytes], grid: tuple[int, int, int], wrong: bool = False) -> None:
    """c = 2 a + b, as `double_add` of the tests does it."""
    a_at, count, _, b_at, _, _, c_at, _, _ = numbers(arguments[:9], "QiiQiiQii")
    a, b, c = (at(address, "f4", count) for address in (a_at, b_at, c_at))
    c[:] = np.float32(2) * a + b
    if wrong:
        c[0] += 1


def main() -> int:
    bundle, results = Path(sys.argv[1]).parent, Path(sys.argv[3])
    mode = os.environ.get("FAKE_GPU", "")
    plan = read_plan(bundle)
    loaded = Results.open(results, plan.digest)
    sides = {step.rust.symbol for case in plan.cases for step in case.steps}
    kernels = {"double_add": double_add} | {
        symbol: lambda arguments, grid: double_add(arguments, grid, wrong=mode == "wrong") for symbol in sides
    }
    sm_count = 8 if mode == "other" else 4
    device = FakeDevice(kernels, device_class=DEVICE_CLASS | {"sm_count": sm_count})
    print(f"{len(loaded.rows)} rows were there", file=sys.stderr)

    def now() -> float:
        if mode == "dies" and loaded.rows:
            os._exit(1)
        return 0.0

    try:
        run_plan(bundle, plan, loaded, device, 1.0, now)
    except WrongDevice as error:
        print(error, file=sys.stderr)
        return 4
    return 3 if any(row["state"] == "failed" for row in loaded.rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
