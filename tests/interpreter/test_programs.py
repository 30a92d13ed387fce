"""Random programs, compiled by the real front end, against the same expression in NumPy."""

from __future__ import annotations

import importlib.util
import tempfile
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.interpreter.harness import Bench, compile_kernel

ROWS, COLUMNS = 4, 16
_MODULES = count()
_KERNEL = """
import cuda.tile as ct


@ct.kernel
def program(x, y, z):
    x = ct.load(x, (ct.bid(0), 0), ({rows}, {columns}))
    y = ct.load(y, (ct.bid(0), 0), ({rows}, {columns}))
    ct.store(z, (ct.bid(0), 0), {kernel})
"""

#: A program is a pair of texts: in cuTile and in NumPy.
Program = tuple[str, str]


def _both(text: str) -> Program:
    return text, text


def _pair(template: tuple[str, str], a: Program, b: Program) -> Program:
    return template[0].format(a=a[0], b=b[0]), template[1].format(a=a[1], b=b[1])


SUMS = [
    ("({a} + {b})", "({a} + {b})"),
    ("({a} - {b})", "({a} - {b})"),
    ("ct.maximum({a}, {b})", "np.maximum({a}, {b})"),
    ("ct.minimum({a}, {b})", "np.minimum({a}, {b})"),
    ("ct.where({a} < {b}, {a}, -{b})", "np.where({a} < {b}, {a}, -{b})"),
]
WHOLE = [
    ("({a} * {b})", "({a} * {b})"),
    ("({a} ^ {b})", "({a} ^ {b})"),
    ("({a} & {b})", "({a} & {b})"),
    ("({a} // ({b} | 1))", "({a} // ({b} | 1))"),
    ("({a} % ({b} | 1))", "({a} % ({b} | 1))"),
    (
        "({a} + ct.sum({b}, axis=1, keepdims=True))",
        "({a} + np.sum({b}, axis=1, keepdims=True, dtype=np.int32))",
    ),
    ("({a} - ct.max({b}, axis=0, keepdims=True))", "({a} - np.max({b}, axis=0, keepdims=True))"),
    ("ct.cumsum({a} - {b}, axis=1)", "np.cumsum({a} - {b}, axis=1, dtype=np.int32)"),
]


def _programs(templates: list[tuple[str, str]]) -> st.SearchStrategy[Program]:
    leaves = st.sampled_from([_both("x"), _both("y")])
    grown = st.recursive(
        leaves,
        lambda inner: st.builds(_pair, st.sampled_from(templates), inner, inner),
        max_leaves=12,
    )
    return st.builds(_pair, st.sampled_from(templates), grown, grown)


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(_programs(SUMS + WHOLE), st.integers(0, 1000))
def test_programs_on_whole_numbers(program: Program, seed: int) -> None:
    generator = np.random.default_rng(seed)
    x, y = (generator.integers(-(2**31), 2**31, (2 * ROWS, COLUMNS)).astype(np.int32) for _ in range(2))
    _check(program, "i32", x, y)


@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(_programs(SUMS), st.integers(0, 1000))
def test_programs_on_floats(program: Program, seed: int) -> None:
    generator = np.random.default_rng(seed)
    x, y = (generator.standard_normal((2 * ROWS, COLUMNS)).astype(np.float32) for _ in range(2))
    _check(program, "f32", x, y)


def _check(program: Program, dtype: str, x: Any, y: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        module = _module(program[0], Path(folder))
        entry = compile_kernel(module.program, [(dtype, 2)] * 3, Path(folder))
    bench = Bench()
    arrays = [bench.array("x", dtype, x), bench.array("y", dtype, y), bench.array("z", dtype, x.shape)]
    bench.launch(entry, (2,), *arrays)
    with np.errstate(all="ignore"):
        # Each block sees its own rows: reductions over axis 0 end at the tile.
        want = [
            eval(program[1], {"np": np, "x": a, "y": b}) for a, b in zip(_tiles(x), _tiles(y), strict=True)
        ]
    np.testing.assert_array_equal(bench.read("z"), np.concatenate(want))


def _tiles(array: Any) -> list[Any]:
    return [array[:ROWS], array[ROWS:]]


def _module(kernel: str, folder: Path) -> ModuleType:
    """The front end reads the source of a kernel from its file."""
    path = folder / f"program_{next(_MODULES)}.py"
    path.write_text(_KERNEL.format(rows=ROWS, columns=COLUMNS, kernel=kernel))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
