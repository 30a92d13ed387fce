"""Programs to compare: pairs of a Python kernel and its port, and kernels that the front end compiles."""

from __future__ import annotations

import shutil
from collections import Counter
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tilebuild.tileir.disassemble import disassemble
from tilebuild.tileir.parse import parse
from tilebuild.tileir.tree import Entry

PAIRS = Path(__file__).parent / "pairs"

#: What the property tests did, for the summary of the run.
COUNTS: Counter[str] = Counter()


@cache
def tool(name: str) -> str:
    """A vendor tool of the installed wheel."""
    package = find_spec("nvidia.cu13")
    assert package is not None
    assert package.submodule_search_locations is not None
    folder = Path(next(iter(package.submodule_search_locations)), "bin")
    found = shutil.which(name, path=str(folder))
    assert found is not None, f"{name} is not in {folder}"
    return found


def pair(name: str) -> tuple[Entry, Entry]:
    python, rust = ((PAIRS / f"{name}.{side}.tileir").read_text() for side in ("python", "rust"))
    return parse(python, f"{name}.python"), parse(rust, f"{name}.rust")


@cache
def programs() -> dict[str, Entry]:
    """All that the tests edit: the Python side of each pair and the kernels of this folder."""
    from tests.tileir import kernels

    found = {path.name.split(".")[0]: parse(path.read_text()) for path in PAIRS.glob("*.python.tileir")}
    for kernel in kernels.SIGNATURES:
        text = disassemble(kernels.byte_code(kernel), tool("tileirdisasm"))
        found[kernel._annotated_function.pyfunc.__name__] = parse(text)
    return dict(sorted(found.items()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for what, count in sorted(COUNTS.items()):
        terminalreporter.write_line(f"tileir: {count} {what}")
