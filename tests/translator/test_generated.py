"""Kernels that combine operations at random: each is the same machine code in Rust, or is refused. Slow,
needs the built driver.

One seed is fixed and one is new in each run: it is printed, and `GENERATED_SEED=N` repeats it.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections import Counter
from contextlib import chdir
from pathlib import Path

import pytest

from tests.translator import case_file, generator
from tests.translator.test_evidence import relations
from tilebuild import toolchain
from tilebuild.diagnostics import DiagnosticError
from tilebuild.tools import assemble
from tilebuild.translator.rungs import RUNGS

FIXED_SEED = 20_261_201
KERNELS = 25  # a seed
#: A kernel that Python itself refuses says nothing; more of them than this, and the generator is at fault.
MOST_REFUSED_BY_PYTHON = 0.3
LIMIT_S = 100.0  # a seed; what is left then is not tried, and said

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("cargo") is None, reason="Rust is not installed"),
]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in case_file.tools().items():
        monkeypatch.setenv(name, value)
    for name in ("driver", "tileiras"):
        monkeypatch.setenv(f"TILEBUILD_TOOL_{name.upper()}", str(toolchain.tool(name).path))


def _new_seed() -> int:
    return int(os.environ.get("GENERATED_SEED") or secrets.randbelow(10**9))


@pytest.mark.parametrize("seed", [FIXED_SEED, _new_seed()], ids=("fixed", "new"))
def test_same_machine_code_or_refused(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = time.monotonic()
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    for number in range(2 * KERNELS):
        if time.monotonic() - start > LIMIT_S or outcomes.total() - outcomes["python refuses"] == KERNELS:
            break
        kernel = generator.generate(seed * 1000 + number)
        folder = tmp_path / str(number)
        folder.mkdir()
        outcome = _outcome(kernel, folder)
        shutil.rmtree(folder)
        outcomes[outcome.partition(":")[0]] += 1
        if outcome.startswith("wrong"):
            wrong.append(f"kernel {number} of seed {seed}: {outcome}\n{kernel.source}\n{kernel.launch}")
    with capsys.disabled():
        print(f"\ngenerated kernels, seed {seed}: {dict(outcomes)}; GENERATED_SEED={seed} repeats them")
    assert not wrong, "\n\n".join(wrong)
    assert outcomes["python refuses"] <= MOST_REFUSED_BY_PYTHON * outcomes.total()
    assert outcomes["same-machine-code"]


def _outcome(kernel: generator.Kernel, folder: Path) -> str:
    """What becomes of a kernel on the best rung that takes it, as a build would choose."""
    case = case_file.Case(folder, "", "generated", kernel.source, kernel.launch)
    with chdir(folder):
        if not case_file.python_side(case, folder)["ok"]:
            return "python refuses"
        python = folder / "s" / case.architecture
        with chdir(python):
            assemble.main(["--arch", case.architecture])
        if not json.loads((python / "assembly.json").read_text())["ok"]:
            return "python refuses"
        last = "refused"
        for rung in RUNGS:
            head, text = case_file.translated(case, rung, folder)
            if head.startswith("refused"):
                last = f"refused: {text}"
                continue
            try:
                found = relations(python, folder / rung, case.architecture)
            except DiagnosticError as error:
                return f"wrong: {rung}: {error}"
            if found.startswith("same-machine-code"):
                return "same-machine-code"
            last = f"wrong: {rung}: {found}"
        return last
