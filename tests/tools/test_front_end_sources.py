"""Imports of a kernel file: declared sources are real, the rest is inert even when it is installed."""

from __future__ import annotations

import sys

import pytest

from tests.tools.front_end import FrontEnd, matrix
from tilebuild.signature import Constant, Signature, signature

KERNEL = """
import cuda.tile as ct
{imports}

@ct.kernel
def kernel(x, y, T: ct.Constant[int]):
    tile = ct.load(x, index=(0, 0), shape=(1, T))
    ct.store(y, index=(0, 0), tile={tile})
"""
PLAIN = KERNEL.format(imports="", tile="tile")


def copy() -> Signature:
    return signature([matrix(), matrix(), Constant(64)])


TWICE = "def twice(t):\n    return t + t\n"
HOST_CODE = """
import logging
import os
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing import Optional
from undeclared.package import *

logger = logging.getLogger(__name__)
logger.info("started on %s", torch.cuda.get_device_name(0))
TABLE = {torch.float16: 1, np.float32: 2}
LIMIT = np.float32(1.5) * 2 - torch.finfo(torch.float16).max
BACKEND = os.environ.get("BACKEND", "cutile")
assert BACKEND == "cutile"
if torch.cuda.is_available():
    raise RuntimeError("never")
for _ in torch.arange(3):
    raise RuntimeError("never")
with torch.no_grad():
    pass

class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.width = width
    @torch.jit.script
    def forward(self, x: Optional[Tensor], y: Tensor | None = None) -> torch.Tensor:
        return F.relu(x)

apply = Layer(3).apply
"""


def test_host_code_runs_on_stand_ins(front_end: FrontEnd) -> None:
    answer = front_end.compile("kernel", copy(), KERNEL.format(imports=HOST_CODE, tile="tile"))
    assert answer.ok, answer.diagnostic.render()
    assert answer.byte_code == front_end.compile("kernel", copy(), PLAIN).byte_code


@pytest.mark.parametrize(
    ("imports", "tile", "name"),
    [
        ("import numpy", "tile * numpy.pi", "numpy.pi"),
        ("from numpy import pi", "tile * pi", "numpy.pi"),
        ("import torch", "torch.relu(tile)", "torch.relu"),
        ("from .common import scale", "scale(tile)", ".common.scale"),
        ("import os", "tile * int(os.environ['N'])", "os.environ"),
        ("import torch\nN = 2 if torch.n == 3 else torch.k", "tile * N", "torch.k"),
        ("import torch", "tile * ct.static_eval(1 if torch.flag else 2)", "torch.flag"),
        ("import random", "tile * ct.static_eval(random.random())", "random.random"),
    ],
)
def test_a_kernel_that_reads_a_stand_in_is_refused_by_name(
    front_end: FrontEnd, imports: str, tile: str, name: str
) -> None:
    source = KERNEL.format(imports=imports, tile=tile)
    problem = front_end.compile("kernel", copy(), source, main="package/src.py").diagnostic
    assert name in problem.fact
    assert problem.span is not None
    assert source.splitlines()[problem.span.line - 1].endswith(f"tile={tile})")


def test_a_helper_behind_an_undeclared_decorator_is_refused(front_end: FrontEnd) -> None:
    imports = "import torch\n@torch.compile(mode='max')\ndef helper(t):\n    return t"
    problem = front_end.compile(
        "kernel", copy(), KERNEL.format(imports=imports, tile="helper(tile)")
    ).diagnostic
    assert "torch.compile" in problem.fact


def test_a_kernel_behind_an_undeclared_decorator_is_refused(front_end: FrontEnd) -> None:
    source = PLAIN.replace("@ct.kernel", "from registry import register\n@register('x')\n@ct.kernel")
    problem = front_end.compile("kernel", copy(), source).diagnostic
    assert "`registry.register`" in problem.fact
    assert problem.span is not None
    assert problem.span.line == 8


@pytest.mark.parametrize("dtype", ["torch.float16", "torch.half", "np.float16"])
def test_element_types_of_other_modules_are_known_by_name(front_end: FrontEnd, dtype: str) -> None:
    source = KERNEL.format(imports="import torch\nimport numpy as np", tile=f"ct.astype(tile, {dtype})")
    answer = front_end.compile("kernel", copy(), source)
    assert answer.ok, answer.diagnostic.render()
    assert answer.byte_code == front_end.compile("kernel", copy(), PLAIN).byte_code


@pytest.mark.parametrize(
    ("imports", "files"),
    [
        ("from helpers import twice", {"helpers.py": TWICE}),
        ("from pkg.sub.helpers import twice", {"pkg/sub/helpers.py": TWICE}),
        ("from pkg import twice", {"pkg/__init__.py": "from .impl import twice", "pkg/impl.py": TWICE}),
        ("import pkg.impl\ntwice = pkg.impl.twice", {"pkg/impl.py": TWICE}),
        ("from pkg import impl\ntwice = impl.twice", {"pkg/impl.py": TWICE}),
    ],
)
def test_declared_sources_are_real(front_end: FrontEnd, imports: str, files: dict[str, str]) -> None:
    source = KERNEL.format(imports=imports, tile="twice(tile)")
    answer = front_end.compile("kernel", copy(), source, files=files)
    assert answer.ok, answer.diagnostic.render()


def test_relative_imports_reach_declared_files_of_an_undeclared_package(front_end: FrontEnd) -> None:
    files = {"pkg/ops/utils.py": "from ..missing import nothing\ndef twice(t):\n    return t + t\n"}
    source = KERNEL.format(imports="from ..utils import twice\nfrom ... import absent", tile="twice(tile)")
    answer = front_end.compile("kernel", copy(), source, files=files, main="pkg/ops/deep/src.py")
    assert answer.ok, answer.diagnostic.render()


def test_a_file_beside_the_kernel_is_found_as_for_a_script(front_end: FrontEnd) -> None:
    source = KERNEL.format(imports="from helpers import twice", tile="twice(tile)")
    files = {"kernels/helpers.py": TWICE}
    assert front_end.compile("kernel", copy(), source, files=files, main="kernels/src.py").ok


def test_a_declared_file_wins_over_an_installed_module(front_end: FrontEnd) -> None:
    source = KERNEL.format(imports="from numpy import twice", tile="twice(tile)")
    before = sys.modules.get("numpy")
    assert front_end.compile("kernel", copy(), source, files={"numpy.py": TWICE}).ok
    assert sys.modules.get("numpy") is before


def test_dataclasses_and_enums_work(front_end: FrontEnd) -> None:
    imports = """
from __future__ import annotations
from dataclasses import dataclass
from enum import IntEnum
class Mode(IntEnum):
    FAST = 2
@dataclass(frozen=True)
class Shape:
    rows: int = Mode.FAST
ROWS = Shape().rows.value
"""
    source = imports.lstrip() + KERNEL.format(imports="", tile="tile * ROWS")
    answer = front_end.compile("kernel", copy(), source)
    assert answer.ok, answer.diagnostic.render()


def test_nothing_stays_in_sys_modules(front_end: FrontEnd) -> None:
    before = set(sys.modules)
    front_end.compile("kernel", copy(), PLAIN, main="some_package/some_file.py")
    assert not {name for name in set(sys.modules) - before if name.startswith("some_")}
