"""The committed table: what it says holds for this corpus, and a part of it is made again in each run.

Made again are the kernels whose port is written differently now than when the table was made, and a share of
the others that moves with the commit. `CORPUS_TABLE_SECONDS` bounds it (0: no bound); what did not fit is
said.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from tests.tilegym import table, wheel
from tilebuild.port import STYLES

ROWS = {(row.operator, row.kernel): row for row in table.committed()}
SETTLED = {"same-machine-code", "python-fails"}
UPDATE = "python -m tests.tilegym.table --write"
LIMIT_S = 240.0


def test_every_kernel_has_a_row() -> None:
    assert len(wheel.kernels()) == 47
    assert set(ROWS) == {(kernel.operator, kernel.name) for kernel in wheel.kernels()}


@pytest.mark.parametrize("kernel", wheel.kernels(), ids=lambda k: f"{k.operator}:{k.name}")
def test_row_is_made_from_this_corpus(kernel: wheel.Kernel) -> None:
    digests = dict(ROWS[kernel.operator, kernel.name].digests)
    digests.pop("rust")
    assert digests == wheel.input_digests(kernel), f"{UPDATE} {kernel.operator}"


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda r: f"{r.operator}:{r.kernel}")
def test_every_cell_is_settled(row: table.Row) -> None:
    headlines = {headline for found in row.evidence.values() for headline in found}
    assert headlines <= SETTLED
    assert not row.numbered_names
    assert row.style == "raw" or row.shims <= 2


def test_page_shows_the_rows() -> None:
    assert table.PAGE.read_text() == table.markdown(table.committed()), UPDATE


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cargo") is None, reason="Rust is not installed")
def test_rows_are_reproduced(capsys: pytest.CaptureFixture[str]) -> None:
    changed = set(_changed())
    start = _rotation(len(wheel.operators()))
    turned = [*wheel.operators()[start:], *wheel.operators()[:start]]
    chosen = [name for name in turned if name in changed] + [
        name for name in turned[:1] if name not in changed
    ]
    done, left = _build(chosen)
    with capsys.disabled():
        print(f"\ntable: {len(changed)} operators changed, made again: {', '.join(done) or 'none'}")
        print(f"table: not made again for want of time: {', '.join(left) or 'none'}")
    with wheel.tools_in_environment():
        fresh = table.read(done)
    wrong = [text for row in fresh for text in _worse(ROWS[row.operator, row.kernel], row)]
    assert not wrong, "\n".join([*wrong, f"if that is meant: {UPDATE} {' '.join(done)}"])


def _changed() -> Iterator[str]:
    """The operators of kernels that are written differently now, on the rung that the table names."""
    with wheel.tools_in_environment():
        for kernel in wheel.kernels():
            row = ROWS[kernel.operator, kernel.name]
            if not row.rung or wheel.digest(_text(kernel, row.rung)) != row.digests["rust"]:
                yield kernel.operator


def _text(kernel: wheel.Kernel, rung: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        wheel.python_side(kernel, kernel.instances, Path(folder))
        return wheel.translated(kernel, rung, Path(folder))


def _rotation(count: int) -> int:
    """Another number for each commit; outside a clone, for each day."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=table.ROOT, capture_output=True, text=True)
    text = done.stdout.strip() or time.strftime("%F")
    return int(sha256(text.encode()).hexdigest(), 16) % count


def _build(operators: list[str]) -> tuple[list[str], list[str]]:
    """Builds one after the other until the time is over; what was built, and what was not."""
    limit = float(os.environ.get("CORPUS_TABLE_SECONDS") or LIMIT_S) or float("inf")
    end = time.monotonic() + limit
    for position, name in enumerate(operators):
        left = end - time.monotonic()
        if left <= 0 or not table.build([name], limit_s=None if left == float("inf") else left):
            return operators[:position], operators[position:]
    return operators, []


def _worse(before: table.Row, now: table.Row) -> Iterator[str]:
    """What the table promises and the build does not keep. The same text must be the same row."""
    name = f"{now.operator}: {now.kernel}"
    if before.digests == now.digests and before != now:
        yield f"{name}: the same port, but another row: {now}"
    if before.evidence != now.evidence:
        yield f"{name}: the evidence is {now.evidence}, was {before.evidence}"
    if before.style and (not now.style or STYLES.index(now.style) > STYLES.index(before.style)):
        yield f"{name}: the style is {now.style or 'none'}, was {before.style}"
