"""The committed ledger against the committed kernels, on a machine without a GPU. For one architecture."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.end_to_end.space import Space
from tilebuild.ledger import Ledger

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURE = "--arch=sm_90"


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Space:
    """A copy of the operators and the ledger; results go to the user's cache, as they do in the checkout."""
    found = RepositorySpace(tmp_path_factory.mktemp("repository"))
    for name in ("kernels", "cache"):
        shutil.copytree(ROOT / name, found.root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "tilebuild.toml", found.root)
    return found


class RepositorySpace(Space):
    @property
    def environment(self) -> dict[str, str]:
        return dict(os.environ)


def test_the_ledger_holds() -> None:
    ledger = Ledger(ROOT / "cache")
    assert list(ledger.problems()) == []
    assert ledger.counts()[1] >= 30


def test_all_tests_are_green_without_a_gpu(space: Space) -> None:
    out = space.ok("test", "//kernels/...", ARCHITECTURE).out
    for operator, cases in (("matmul", 6), ("softmax", 8), ("vector_add", 10)):
        assert re.search(rf"{operator}.gpu_test .*PASSED  gpu test on NVIDIA H200: {cases} passed", out), out
    assert "pending" not in out.lower()


def test_benchmarks_are_measured(space: Space) -> None:
    out = space.ok("bench", "//kernels/...", ARCHITECTURE, "--json").out
    targets = json.loads(out.splitlines()[-1])["targets"]
    found = {t["label"]: t["verdict"]["benchmark"][0] for t in targets}
    assert all(item["pending"] == 0 and item["measured"] == 2 for item in found.values())
    assert all(0.97 < item["speed"] < 1.03 for item in found.values())


def test_a_changed_tile_needs_a_gpu_again(space: Space) -> None:
    build = space.root / "kernels/BUILD"
    text = build.read_text()
    assert "(512, 384, 256, 128, 128, 64)" in text
    build.write_text(text.replace("(512, 384, 256, 128, 128, 64)", "(512, 384, 256, 128, 64, 64)"))
    try:
        done = space.run("test", "//kernels/...", ARCHITECTURE)
    finally:
        build.write_text(text)
    assert done.code == 3, done.text
    where = "gpu-test on NVIDIA H200 (compute capability 9.0, 132 SMs)"
    pending = [line for line in done.out.splitlines() if line.startswith("PENDING")]
    assert pending == [
        f"PENDING //kernels:matmul: kernel matmul, case {dtype}_512x384x256, {where}"
        for dtype in ("f16", "bf16")
    ]
    assert "tilebuild bundle export //kernels:matmul --out DIR" in done.out


def test_a_comment_needs_nothing(space: Space) -> None:
    space.ok("test", "//kernels:matmul", ARCHITECTURE)
    kernel = space.root / "kernels/matmul.py"
    text = kernel.read_text()
    kernel.write_text("# a comment that moves every line\n" + text)
    try:
        events = space.events("test", "//kernels:matmul", ARCHITECTURE, "--json")
    finally:
        kernel.write_text(text)
    assert events[-1]["exit_code"] == 0
    ran = {e["mnemonic"] for e in events if e["event"] == "finished" and e["status"] == "ran"}
    looked = {"PythonIr", "Translate", "CargoCheck", "RustIr"}
    said = {"Judge", "Choose", "PublishPort"}  # a refused rung names its line; the Rust has the comment
    assert ran <= looked | said
