"""GPU verdicts from pending to green and back, with the real tools and a fake device in place of a GPU.

The workspace is built once; each test puts back what it edits, and the ledger begins empty unless it asks
for `recorded`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.kernels import KernelSpace
from tests.end_to_end.space import Done
from tests.gpu.command_runner import DEVICE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = f'architectures = ["sm_90"]\n[gpu]\ndevices = ["{DEVICE}"]\n'
LEDGER = "cache/k/op/nvidia-fake-cc9.0-4sm.json"


class DeviceSpace(KernelSpace):
    @property
    def runner(self) -> Path:
        """The command that stands for a Python with CuPy on a machine with a GPU."""
        return self.folder / "python-of-a-gpu-machine"

    def fill(self) -> None:
        super().fill()
        self.write("tilebuild.toml", SETTINGS)
        self.edit("args =", "benchmark = n == 256,\n            args =", "k/BUILD")
        self.runner.write_text(
            f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m tests.gpu.command_runner "$@"\n'
        )
        self.runner.chmod(0o755)

    def export(self, name: str, *options: str) -> Path:
        bundle = self.folder / name
        shutil.rmtree(bundle, ignore_errors=True)
        self.ok("bundle", "export", "//k:op", "--out", str(bundle), *options)
        return bundle

    def shell(self, *command: str) -> Done:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return Done(done.returncode, done.stdout, done.stderr)

    def with_gpu(self, *arguments: str, mode: str = "") -> Done:
        """The command on a machine with a GPU."""
        environment = {"TILEBUILD_GPU_RUNNER": str(self.runner), "FAKE_GPU": mode}
        return self.run(*arguments, environment=environment)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> DeviceSpace:
    space = DeviceSpace(tmp_path_factory.mktemp("device"))
    space.fill()
    space.ok("build", "//k:op")
    return space


@pytest.fixture
def space(built: DeviceSpace) -> Iterator[DeviceSpace]:
    texts = {path: path.read_text() for path in (built.root / "k").iterdir()}
    yield built
    for path, text in texts.items():
        path.write_text(text)
    shutil.rmtree(built.root / "cache", ignore_errors=True)


@pytest.fixture
def recorded(space: DeviceSpace, tmp_path: Path) -> DeviceSpace:
    """With all verdicts in the ledger, made on another machine."""
    bundle = space.export("bundle")
    results = tmp_path / "results.json"
    done = space.shell(str(space.runner), str(bundle / "runner"), "--out", str(results))
    assert done.code == 0, done.text
    out = space.ok("bundle", "import", str(results)).out
    assert "recorded 3 verdicts of 1 target" in out
    return space


def test_pending_is_shown_and_builds(space: DeviceSpace) -> None:
    out = space.ok("build", "//k:op").out
    assert "gpu test on NVIDIA Fake: 2 pending" in out
    assert "0 of 1 target ok, 1 pending" in out
    assert "met by identity: both sides have the same machine code" in out
    assert space.ok("build", "//k:op").out.count("2 pending") == 1  # and when there is nothing to do
    verdict = json.loads(space.read("k/op/verdict.json"))
    assert {gate["gate"]: gate["state"] for gate in verdict["gates"]} == {
        "evidence": "passed",
        "cpu-test": "passed",
        "gpu-test": "pending",
        "speed": "passed",
    }


def test_pending_fails_tests_and_says_what_to_do(space: DeviceSpace) -> None:
    done = space.run("test", "//k:op")
    assert done.code == 3, done.text
    assert "PASSED  cpu test: 2 passed" in done.out
    assert "//k:op.gpu_test  PENDING" in done.text.replace("(cached) ", "")
    device = "NVIDIA Fake (compute capability 9.0, 4 SMs)"
    assert f"PENDING //k:op: kernel double_add, case f32_256, gpu-test on {device}" in done.out
    assert "tilebuild bundle export //k:op --out DIR" in done.out
    assert space.run("test", "//k:op", "--allow-pending").code == 0
    assert space.run("bench", "//k:op").code == 3
    assert space.run("test", "//k:op.cpu_test").code == 0


def test_recorded_verdicts_are_enough(recorded: DeviceSpace) -> None:
    out = recorded.ok("test", "//k:op").out
    assert "//k:op.gpu_test  PASSED  gpu test on NVIDIA Fake: 2 passed" in out
    out = recorded.ok("bench", "//k:op").out
    assert re.search(r"//k:op f32_256 +NVIDIA Fake +10.0 µs +10.0 µs +1\.0000 .* tie +1980 MHz", out), out
    assert "verify: 3 verdicts in 1 file of the ledger hold" in recorded.ok("verify").out
    assert "1 target ok" in recorded.ok("build", "//k:op", "--verify=bench").out
    again = recorded.ok("bundle", "export", "//k:op", "--out", str(recorded.folder / "none")).out
    assert "every case has its verdict" in again
    assert not (recorded.folder / "none").exists()


def test_a_row_runs_summaries_only(recorded: DeviceSpace) -> None:
    recorded.ok("build", "//k:op")
    recorded.edit('"schema": 1', '"schema": 1 ', LEDGER)
    assert recorded.stages() == {"Summarize": 1}


def test_a_comment_leaves_verdicts_valid(recorded: DeviceSpace) -> None:
    recorded.ok("build", "//k:op")
    recorded.edit("    block =", "    # which block this is\n    block =")
    recorded.edit("def double_add", "# what it means\ndef double_add", "k/reference.py")
    ran = recorded.stages()
    assert not {"Assemble", "Compare"} & ran.keys()
    assert recorded.run("test", "//k:op").code == 0


def test_a_changed_constant_needs_new_verdicts(recorded: DeviceSpace) -> None:
    recorded.edit("const(128)", "const(64)", "k/BUILD")
    done = recorded.run("test", "//k:op")
    assert done.code == 3, done.text
    assert "kernel double_add, case f32_1, gpu-test on NVIDIA Fake" in done.out
    assert "tilebuild bundle export //k:op --out DIR" in done.out


def test_an_edited_digit_is_found(recorded: DeviceSpace) -> None:
    text = (recorded.root / LEDGER).read_text()
    place = re.search(r'"sha256": "\D*(\d)', text)
    assert place is not None
    digit = str((int(place[1]) + 1) % 10)
    (recorded.root / LEDGER).write_text(text[: place.start(1)] + digit + text[place.end(1) :])
    done = recorded.run("verify")
    assert done.code == 1
    assert f"{LEDGER}: f32_1 gpu-test: the row was changed after it was recorded" in done.err
    done = recorded.run("test", "//k:op")
    assert done.code == 3, done.text
    assert "what is recorded does not count: the row was changed" in done.out


def test_a_broken_ledger_is_one_error(recorded: DeviceSpace) -> None:
    (recorded.root / LEDGER).write_text("{")
    assert recorded.run("verify").code == 1
    done = recorded.run("test", "//k:op")
    assert done.code == 1
    assert "nvidia-fake-cc9.0-4sm.json" in done.err
    assert "Traceback" not in done.text


def test_a_machine_with_a_gpu_runs_what_is_missing(space: DeviceSpace) -> None:
    done = space.with_gpu("test", "//k:op")
    assert done.code == 0, done.text
    assert "running 2 GPU stages on NVIDIA Fake" in done.err
    assert len(json.loads((space.root / LEDGER).read_text())["rows"]) == 2
    assert "GPU stages" not in space.with_gpu("test", "//k:op").err
    done = space.with_gpu("bench", "//k:op")
    assert done.code == 0, done.text
    assert "running 1 GPU stages" in done.err
    assert "tie" in done.out


def test_an_interrupted_run_goes_on(space: DeviceSpace) -> None:
    done = space.with_gpu("test", "//k:op", mode="dies")
    assert done.code == 36, done.text
    assert not (space.root / LEDGER).exists()
    done = space.with_gpu("test", "//k:op")
    assert done.code == 0, done.text
    assert "1 rows were there" in done.err
    assert not [path for path in (space.folder / "store/bundles").iterdir() if path.is_dir()]


def test_what_fails_on_a_gpu_fails_and_is_not_recorded(space: DeviceSpace) -> None:
    done = space.with_gpu("test", "//k:op", mode="wrong")
    assert done.code == 3, done.text
    assert "FAILED //k:op.gpu_test: on the GPU: f32_1: " in done.out
    assert not (space.root / LEDGER).exists()
    assert space.with_gpu("build", "//k:op", mode="wrong").code == 1


def test_a_gpu_of_another_class_leaves_it_pending(space: DeviceSpace) -> None:
    done = space.with_gpu("test", "//k:op", mode="other")
    assert done.code == 3
    assert "the plan is for NVIDIA Fake, compute capability 9.0, 4 SMs, this is" in done.err
    assert "PENDING //k:op" in done.out


def test_a_runner_that_cannot_run(space: DeviceSpace) -> None:
    done = space.run("test", "//k:op", environment={"TILEBUILD_GPU_RUNNER": "/bin/false"})
    assert done.code == 36
    assert "gpu.runner in the settings" in done.err


def test_bundles_are_small_and_always_the_same(recorded: DeviceSpace) -> None:
    one, two = recorded.export("one", "--include-passed"), recorded.export("two", "--include-passed")
    files = {path.relative_to(one): path.read_bytes() for path in one.rglob("*") if path.is_file()}
    assert files == {path.relative_to(two): path.read_bytes() for path in two.rglob("*") if path.is_file()}
    assert sum(map(len, files.values())) < 1_000_000
    assert str(recorded.root).encode() not in b"".join(files.values())


def test_mistakes_with_bundles(space: DeviceSpace) -> None:
    folder = space.folder
    (folder / "garbage.json").write_text("[1")
    (folder / "other.json").write_text('{"schema": 1}')
    assert space.run("bundle", "run", str(folder)).code == 2
    assert space.run("bundle", "import", str(folder / "nowhere.json")).code == 2
    assert space.run("bundle", "export", "//k:op", "--out", str(folder)).code == 2
    for name in ("garbage.json", "other.json"):
        done = space.run("bundle", "import", str(folder / name))
        assert done.code == 7
        assert f"{name} is no result file of a bundle" in done.err
    done = space.run("bundle", "export", "//k:op", "--out", str(folder / "x"), "--device", "B200")
    assert "B200 is none of the device classes that wait: NVIDIA Fake" in done.err


def test_results_that_were_edited_are_not_imported(space: DeviceSpace, tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    space.shell(str(space.runner), str(space.export("bundle") / "runner"), "--out", str(results))
    results.write_text(results.read_text().replace('"guard_bytes": 0', '"guard_bytes": 1', 1))
    done = space.run("bundle", "import", str(results))
    assert done.code == 7
    assert "nothing was recorded: //k:op f32_1: the row was changed" in done.err
    assert not (space.root / "cache").exists()


def test_the_report_has_it_all(recorded: DeviceSpace) -> None:
    page = recorded.folder / "report.html"
    recorded.ok("build", "//k:op")
    assert "1 operators" in recorded.ok("report", "--out", str(page)).out
    text = page.read_text()
    for word in ("//k:op", "same-machine-code", "double_add", "NVIDIA Fake", "1.0000", "tie"):
        assert word in text
    assert json.loads(recorded.read("k/op/verdict.json"))["ok"]
