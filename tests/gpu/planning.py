"""The operator of these tests: `y = factor * x` over float vectors and matrices, right and wrong in many
ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.gpu.fake import DEVICE_CLASS, FakeDevice, at, fake_cubin, numbers
from tilebuild.gpu.bundle import Source, StepFiles, entry_of, write_bundle
from tilebuild.gpu.keys import case_key, source_digest
from tilebuild.gpu.plan import Plan, read_plan

SIZES = (8, 4, 4, 8, 4, 4, 4)
REFERENCE = b"def scale(xp, *, x, factor):\n    return x.astype(xp.float64) * factor\n"
Kernel = Callable[[Sequence[bytes], tuple[int, int, int]], None]


def scale(edit: Callable[[Any, Any], None] | None = None) -> Kernel:
    """A kernel that is right, and then does what `edit(x, y)` does; both reach 64 elements beyond each
    end.
    """

    def kernel(arguments: Sequence[bytes], grid: tuple[int, int, int]) -> None:
        x_at, count, _, y_at, _, _, factor = numbers(arguments, "QiiQiif")
        x = at(x_at - 4 * 64, "f4", count + 128)
        y = at(y_at - 4 * 64, "f4", count + 128)
        y[64 : 64 + count] = x[64 : 64 + count] * np.float32(factor)
        if edit is not None:
            edit(x, y)

    return kernel


def vector_case(count: int = 100, **changes: Any) -> dict[str, Any]:
    array = {"kind": "array", "dtype": "f32", "shape": [count], "strides": None, "offset": 0, "fill": None}
    array |= {"alias_of": None, "index_dtype": "i32"}
    step = {"kind": "launch", "name": "", "kernel": "scale", "args": ["arg0", "arg1", 0.5, _const()]}
    case = {
        "kind": "case",
        "name": f"f32_{count}",
        "arrays": {"arg0": array | {"role": "in"}, "arg1": array | {"role": "out"}},
        "steps": [step | {"grid": None, "hints": {}, "benchmark": False}],
        "benchmark": False,
        "seed": 0,
    }
    return case | changes


def bundle(
    folder: Path,
    cases: Sequence[Mapping[str, Any]],
    stages: Sequence[str] = ("gpu-test",),
    identical: bool = True,
    reference: bytes | None = REFERENCE,
) -> Plan:
    """A bundle of cases of the operator; its Python entry is `scale`, its Rust entry `scale_entry`."""
    entries: list[dict[str, Any]] = []
    files: dict[str, bytes] = {}
    source = None if reference is None else Source("scale_reference.py", reference, "scale")
    for case in cases:
        step = StepFiles(
            (1, 1, 1),
            fake_cubin("scale", SIZES),
            fake_cubin("scale_entry", SIZES),
            ("x", "y", "factor", "TILE"),
        )
        entry, named = entry_of("//kernels:scale", case, [step], identical, source)
        digests = {} if reference is None else {"reference": source_digest(reference.decode())}
        entry["keys"] = {stage: case_key(stage, entry, digests, DEVICE_CLASS) for stage in stages}
        entries.append(entry)
        files |= named
    write_bundle(folder, entries, files.__getitem__, DEVICE_CLASS)
    return read_plan(folder)


def device(rust: Kernel, python: Kernel | None = None, **options: Any) -> FakeDevice:
    return FakeDevice({"scale": python or scale(), "scale_entry": rust}, **options)


def _const() -> dict[str, Any]:
    return {"kind": "const", "value": 32}
