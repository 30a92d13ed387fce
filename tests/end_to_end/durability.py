"""Builds of one small operator that are disturbed, and what they must come to all the same.

The operator has two texts. What a build of each makes in peace is known; after any fault a build must make
exactly that.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from tests.end_to_end.kernels import KernelSpace
from tests.end_to_end.space import Done
from tilebuild.cache.sealed import unseal

PATIENCE_S = 90.0
TARGET = "//k:op"

_KERNEL = '''
import cuda.tile as ct


@ct.kernel
def twice(a, c, TILE: ct.Constant[int]):
    """c = 2 a."""
    block = ct.bid(0)
    tile = ct.load(a, index=(block,), shape=(TILE,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(c, index=(block,), tile=tile + tile)
'''
TEXTS = (_KERNEL, _KERNEL.replace("    block =", "    # Which block this is.\n    block ="))
_REFERENCE = """
def twice(xp, *, a, TILE):
    return 2 * a.astype(xp.float64)
"""
_BUILD = """
tile_operator(
    name = "op",
    src = "op.py",
    reference = "reference.py",
    grids = {"twice": ["cdiv(a.shape[0], TILE)"]},
    cases = [
        launch(name = "c", kernel = "twice", args = [array("f32", [64]), output("f32", [64]), const(32)]),
    ],
)
"""

Contents = Mapping[str, str]


class Operator(KernelSpace):
    """A workspace with the operator, and a store beside it or elsewhere."""

    def __init__(self, folder: Path, store: Path | None = None) -> None:
        super().__init__(folder)
        self.store = store or folder / "store"
        self.write("tilebuild.toml", 'architectures = ["sm_90"]\n')
        self.write("k/BUILD", _BUILD)
        self.write("k/reference.py", _REFERENCE)
        self.write_text(0)

    def write_text(self, which: int) -> None:
        self.write("k/op.py", TEXTS[which])

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "TILEBUILD_CACHE_DIRECTORY": str(self.store)}

    @property
    def state(self) -> Path:
        return self.root / "tilebuild-out/.tilebuild"

    def outputs(self) -> Contents:
        """Digests of what lies in the output folder."""
        folder = self.root / "tilebuild-out"
        files = (path for path in (folder / "k").rglob("*") if path.is_file())
        return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}

    def build(self, *options: str) -> Done:
        return self.run("build", TARGET, "-j", "2", *options)

    def must_make(self, contents: Contents) -> None:
        done = self.build()
        assert done.code == 0, done.text
        assert self.outputs() == contents

    def results(self) -> list[Path]:
        return sorted(self.store.glob("v1/ac/*/*"))

    def blobs(self) -> list[Path]:
        return sorted(self.store.glob("v1/cas/*/*"))

    def forget(self, chance: random.Random, count: int, longest_s: float = float("inf")) -> None:
        """Some actions have to run again, of those that took no longer than that."""
        found = []
        for path in self.results():
            with contextlib.suppress(FileNotFoundError):  # another workspace of this store was faster
                result = unseal(path.read_bytes())
                if result and result["seconds"] <= longest_s:
                    found.append(path)
        for path in chance.sample(found, min(count, len(found))):
            path.unlink(missing_ok=True)


def descendants(pid: int) -> list[int]:
    """All processes below, parents first."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            status = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            children.setdefault(int(status[1]), []).append(int(entry))
    found, pending = [], [pid]
    while pending:
        below = children.get(pending.pop(0), [])
        found += below
        pending += below
    return found


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def kill_all(pid: int) -> None:
    for each in (pid, *descendants(pid)):
        kill(each)


def kill_engine(pid: int) -> None:
    kill(pid)


def kill_worker(pid: int) -> None:
    for each in descendants(pid)[:1]:
        kill(each)


def kill_tool(pid: int) -> None:
    for each in descendants(pid)[-1:]:
        kill(each)


KILLS: tuple[Callable[[int], None], ...] = (kill_all, kill_engine, kill_worker, kill_tool)


def killed_build(space: Operator, chance: random.Random, longest_s: float) -> str:
    """A build in which something is killed at a random instant. Says what; nothing if it had ended before."""
    end = chance.choice(KILLS)
    process = space.start("build", TARGET, "-j", "2")
    try:
        process.wait(chance.uniform(0, longest_s))
    except subprocess.TimeoutExpired:
        end(process.pid)
        process.communicate(timeout=PATIENCE_S)
        # A tool that is killed looks like one that ran out of memory: a fault of the machine.
        assert process.returncode in (0, 1, 33, 36, -signal.SIGKILL), (end.__name__, process.returncode)
        return end.__name__ if process.returncode else f"{end.__name__}, went on"
    process.communicate()
    assert process.returncode == 0
    return ""


def damage(path: Path, chance: random.Random) -> None:
    """Truncates, empties, removes, or changes one byte, or many."""
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data)) if data else 0
    way = chance.randrange(5)
    if way == 0:
        del data[at:]
    elif way == 1:
        data.clear()
    elif way == 2 and data:
        data[at] ^= 1 << chance.randrange(8)
    elif way == 3:
        data[at : at + 64] = chance.randbytes(64)
    else:
        path.unlink()
        return
    path.write_bytes(data)


@contextlib.contextmanager
def running(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Nothing of it is left afterwards, whatever a test came to."""
    try:
        yield process
    finally:
        if process.poll() is None:
            kill_all(process.pid)
        process.communicate()
