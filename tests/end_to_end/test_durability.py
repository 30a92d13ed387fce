"""Whatever happens to a build, the next one makes what a build in peace makes: nothing is lost, no wrong hit,
no endless wait.

A few instants and all damage at once run always; the rest is slow. What was survived is printed.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.end_to_end.durability import (
    PATIENCE_S,
    TARGET,
    Contents,
    Operator,
    damage,
    killed_build,
    running,
)
from tests.end_to_end.space import COMMAND
from tilebuild import toolchain
from tilebuild.cache.sealed import unseal

LIMIT_S = 170.0
LANES = 4


@pytest.fixture(scope="module", autouse=True)
def _driver() -> None:
    if not Path(toolchain.tool("driver").path).is_file():
        pytest.skip("the Rust driver is not built yet: any build of an operator builds it")


class Peace:
    """An operator that was built undisturbed, and what each of its texts makes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.space = Operator(folder / "peace")
        self.expected: list[Contents] = []
        for which in (1, 0):
            self.space.write_text(which)
            started = time.monotonic()
            done = self.space.build()
            assert done.code == 0, done.text
            self.expected.insert(0, self.space.outputs())
            self.seconds = time.monotonic() - started
        assert self.expected[0] != self.expected[1]
        results = (unseal(path.read_bytes()) for path in self.space.results())
        self.median_s = statistics.median(result["seconds"] for result in results)

    def copy(self, name: str, store: Path | None = None) -> Operator:
        """Another workspace, with a store of its own unless one is given, that holds all results."""
        made = Operator(self.folder / name, store)
        if not made.store.exists():
            shutil.copytree(self.space.store, made.store)
        return made


@pytest.fixture(scope="module")
def peace(tmp_path_factory: pytest.TempPathFactory) -> Peace:
    return Peace(tmp_path_factory.mktemp("durability"))


def survive(peace: Peace, name: str, instants: int, seed: int) -> Counter[str]:
    """Workspaces with one store are built at once, and something is killed in each build."""
    store = peace.folder / f"{name}-store"
    shutil.copytree(peace.space.store, store)
    deadline = time.monotonic() + LIMIT_S
    found: Counter[str] = Counter()
    counting = threading.Lock()

    def lane(number: int) -> None:
        space = peace.copy(f"{name}-{number}", store)
        chance = random.Random(f"{seed} {number}")
        longest_s = peace.seconds
        while time.monotonic() < deadline and found.total() < instants:
            which = chance.randrange(2)
            space.write_text(which)
            # Mostly actions that take a moment: many instants rather than long ones.
            space.forget(chance, 4, float("inf") if chance.random() < 0.05 else peace.median_s)
            if chance.random() < 0.1:
                shutil.rmtree(space.root / "tilebuild-out", ignore_errors=True)
            killed = killed_build(space, chance, longest_s)
            started = time.monotonic()
            space.must_make(peace.expected[which])
            longest_s = max(time.monotonic() - started, 0.5)
            with counting:
                found.update([killed] if killed else [])

    with ThreadPoolExecutor(LANES) as lanes:
        list(lanes.map(lane, range(LANES)))
    return found


def test_a_few_instants(peace: Peace, capsys: pytest.CaptureFixture[str]) -> None:
    survived = survive(peace, "few", 4, seed=1)
    with capsys.disabled():
        print(f"\nsurvived {survived.total()} instants: {dict(survived)}")
    assert survived.total() >= 4


@pytest.mark.slow
def test_two_hundred_instants(peace: Peace, capsys: pytest.CaptureFixture[str]) -> None:
    survived = survive(peace, "many", 200, seed=2)
    with capsys.disabled():
        print(f"\nsurvived {survived.total()} instants: {dict(survived)}")
    assert survived.total() >= 20, "this machine is too slow to say much"


# Damage


def damaged_blobs(space: Operator, chance: random.Random) -> None:
    for path in chance.sample(space.blobs(), 3):
        damage(path, chance)


def damaged_results(space: Operator, chance: random.Random) -> None:
    for path in chance.sample(space.results(), 3):
        damage(path, chance)


def damaged_state(space: Operator, chance: random.Random) -> None:
    for path in [path for path in space.state.rglob("*") if path.is_file()]:
        damage(path, chance)


def edited_outputs(space: Operator, chance: random.Random) -> None:
    files = [path for path in (space.root / "tilebuild-out/k").rglob("*") if path.is_file()]
    for path in chance.sample(files, 3):
        damage(path, chance)


def replaced_outputs(space: Operator, chance: random.Random) -> None:
    """A folder, and a link to somewhere else, stand where files were."""
    one, other = chance.sample([p for p in (space.root / "tilebuild-out/k").rglob("*") if p.is_file()], 2)
    one.unlink()
    one.mkdir()
    other.unlink()
    other.symlink_to(space.root / "k/BUILD")


def clock_set_back(space: Operator, chance: random.Random) -> None:
    """All that was written before the clock went back comes from the future; then a source is edited."""
    ahead = time.time() + chance.uniform(1, 1e6)
    for path in (*space.root.rglob("*"), *space.store.rglob("*")):
        if path.is_file():
            os.utime(path, (ahead, ahead), follow_symlinks=False)
    space.write_text(1)
    space.write_text(0)


def nothing_but_the_sources(space: Operator, chance: random.Random) -> None:
    shutil.rmtree(space.root / "tilebuild-out")


FAULTS: tuple[Callable[[Operator, random.Random], None], ...] = (
    *(damaged_blobs, damaged_results, damaged_state, edited_outputs, replaced_outputs),
    *(clock_set_back, nothing_but_the_sources),
)


@pytest.fixture(scope="module")
def damaged(peace: Peace) -> Operator:
    space = peace.copy("damaged")
    space.must_make(peace.expected[0])
    return space


def test_all_damage_at_once_is_repaired(damaged: Operator, peace: Peace) -> None:
    chance = random.Random(10)
    for fault in FAULTS[:-1]:
        fault(damaged, chance)
    damaged.must_make(peace.expected[0])


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_damage_is_repaired(damaged: Operator, peace: Peace, fault: Callable[..., None]) -> None:
    fault(damaged, random.Random(3))
    damaged.must_make(peace.expected[0])


@pytest.mark.slow
def test_many_faults(damaged: Operator, peace: Peace, capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(4)
    survived: Counter[str] = Counter()
    deadline = time.monotonic() + LIMIT_S
    while survived.total() < 100 and time.monotonic() < deadline:
        for fault in chance.sample(FAULTS, 2):
            fault(damaged, chance)
            survived[fault.__name__] += 1
            if not damaged.state.is_dir():
                damaged.must_make(peace.expected[0])
        damaged.must_make(peace.expected[0])
    with capsys.disabled():
        print(f"\nsurvived {survived.total()} faults: {dict(survived)}")


# Others at work


@pytest.mark.slow
def test_two_builds_of_one_workspace(peace: Peace) -> None:
    space = peace.copy("twins")
    space.forget(random.Random(5), 3)
    with running(space.start("build", TARGET)) as one, running(space.start("build", TARGET)) as other:
        for build in (one, other):
            out, err = build.communicate(timeout=PATIENCE_S)
            assert build.returncode == 0, out + err
    assert space.outputs() == peace.expected[0]


@pytest.mark.slow
def test_the_cache_is_swept_during_a_build(peace: Peace) -> None:
    space = peace.copy("swept")
    space.forget(random.Random(6), 3)
    with running(space.start("build", TARGET)) as build:
        while build.poll() is None:
            assert space.run("cache", "gc", "--limit", "0").code in (0, 9)
            assert space.run("cache", "purge").code in (0, 9)
        assert build.wait() == 0
    assert space.outputs() == peace.expected[0]
    space.must_make(peace.expected[0])


@pytest.mark.slow
def test_a_source_that_keeps_changing(peace: Peace) -> None:
    space = peace.copy("edited")
    space.forget(random.Random(7), 3)
    with running(space.start("build", TARGET)) as build:
        while build.poll() is None:
            space.write_text(1)
            space.write_text(0)
    for which in (1, 0):
        space.write_text(which)
        space.must_make(peace.expected[which])


@pytest.mark.slow
def test_the_output_folder_goes_away(peace: Peace) -> None:
    space = peace.copy("gone")
    space.forget(random.Random(8), 20)
    with running(space.start("build", TARGET)) as build:
        time.sleep(peace.seconds / 3)
        shutil.rmtree(space.root / "tilebuild-out", ignore_errors=True)
        assert build.wait(PATIENCE_S) in (0, 1, 36)
    space.must_make(peace.expected[0])


# The machine

ALONE = ["unshare", "--user", "--map-root-user", "--mount"]
needs_namespaces = pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run([*ALONE, "true"], capture_output=True).returncode != 0,
    reason="this machine does not let users mount",
)


def in_a_namespace(space: Operator, script: str) -> str:
    """Runs a script that may mount; `build` in it builds, and says how that ended."""
    command = " ".join([*COMMAND, "build", TARGET, "-j", "2"])
    build = f"code=0; {command} > log 2>&1 || code=$?; echo $code; grep -E 'error:|help:' log || true"
    text = f"build() {{ {build}; }}\n{script}"
    done = subprocess.run(
        [*ALONE, "sh", "-euc", text],
        cwd=space.root,
        env=space.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_namespaces
@pytest.mark.slow
@pytest.mark.parametrize("kilobytes", [0, 8, 24, 60])
def test_a_full_disk(peace: Peace, kilobytes: int) -> None:
    """So much is left when the build begins; afterwards there is room."""
    space = peace.copy(f"full-{kilobytes}")
    space.forget(random.Random(9), 12)
    script = f"""
    mkdir disk
    mount -t tmpfs -o size=64m none disk
    mkdir disk/out tilebuild-out
    cp -r ../store disk/store
    mount --bind disk/out tilebuild-out
    export TILEBUILD_CACHE_DIRECTORY=$PWD/disk/store
    used=$(df --output=used disk | tail -1)
    mount -o remount,size=$((used + {kilobytes}))k disk
    build
    mount -o remount,size=64m disk
    build
    mkdir kept
    cp -r tilebuild-out/k kept
    """
    first, said, help_, second = in_a_namespace(space, script).splitlines()
    assert first == "36"
    assert "no space left on device" in said
    assert "help: what was finished is kept" in help_
    assert second == "0"
    (space.root / "tilebuild-out").rmdir()
    (space.root / "kept").rename(space.root / "tilebuild-out")
    assert space.outputs() == peace.expected[0]


@needs_namespaces
@pytest.mark.slow
@pytest.mark.parametrize("place", ["tilebuild-out", "../store"])
def test_a_read_only_folder(peace: Peace, place: str) -> None:
    space = peace.copy(f"read-only-{place.strip('./')}")
    space.must_make(peace.expected[0])
    space.write_text(1)
    script = f"""
    mount --bind {place} {place}
    mount -o remount,ro,bind {place}
    build
    """
    code, said, _ = in_a_namespace(space, script).splitlines()
    assert code == "36"
    assert "read-only file system" in said
    space.must_make(peace.expected[1])
