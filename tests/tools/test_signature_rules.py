"""The rules of `tilebuild.signature` against `KernelSignature.from_kernel_args` of the installed
cuda.tile."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from tilebuild.signature import Signature, array_parameter, signature

#: Short name, what NumPy calls it in an array interface, bytes.
TYPES = (
    ("f32", "<f4", 4),
    ("f16", "<f2", 2),
    ("bf16", "<V2", 2),
    ("i64", "<i8", 8),
    ("u8", "|u1", 1),
    ("bool", "|b1", 1),
)
SHAPES: tuple[tuple[int, ...], ...] = (
    (),
    *((n,) for n in (0, 1, 2, 8, 15, 16, 17, 1024)),
    *itertools.product((1, 16, 24, 1000), (1, 32, 33)),
    (4, 1, 16),
    (1, 1, 1, 1),
    (2, 3, 16, 5, 32),
    (2, 1, 2, 1, 2, 16),
)
#: Beyond the contiguous ones: padded rows, steps, broadcasts, overlaps, transposition.
STRIDED: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((8, 16), (24, 1)),
    ((8, 16), (32, 2)),
    ((8, 16), (0, 1)),
    ((8, 16), (1, 8)),
    ((8, 16), (8, 1)),
    ((1, 16), (0, 1)),
    ((16,), (0,)),
    ((4, 16), (16, 16)),
    ((3, 4, 16), (64, 16, 1)),
    ((3, 4, 16), (1, 48, 3)),
)


def test_arrays_mean_what_a_launch_says() -> None:
    cases = list(_cases())
    asked = [
        (typestr, shape, [s * size for s in strides], (1 << 20) + offset)
        for (_, typestr, size), shape, strides, offset in cases
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.tools.launch_signatures"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert len(answers) == len(cases) > 400
    for ((name, _, _), shape, strides, offset), answer in zip(cases, answers, strict=True):
        ours = array_parameter(name, shape, strides, offset)
        assert signature([ours]).to_json()["parameters"] == [{"array": answer}], (
            name,
            shape,
            strides,
            offset,
        )


def test_a_signature_survives_json() -> None:
    ours = signature([array_parameter("f16", [1, 32], [32, 1])], {"occupancy": 2})
    assert ours.calling_convention == "cutile_python_v2"
    assert Signature.from_json(json.loads(json.dumps(ours.to_json()))) == ours


def _cases() -> Iterator[tuple[tuple[str, str, int], tuple[int, ...], tuple[int, ...], int]]:
    for type_ in TYPES:
        for shape in SHAPES:
            for offset in (0, 16, type_[2]):
                yield type_, shape, _contiguous(shape), offset
        for shape, strides in STRIDED:
            yield type_, shape, strides, 0


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[Any] = []
    step = 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))
