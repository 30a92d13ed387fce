"""Which stages an edit of a kernel runs again. The real tools on one small operator; counts are exact.

The Rust driver comes from the user's cache and is built once if it is not there; results go to a store of
their own.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.end_to_end.space import Space

pytestmark = pytest.mark.slow

KERNEL = '''
import cuda.tile as ct


def unused(x):
    return x


@ct.kernel
def double_add(a, b, c, TILE: ct.Constant[int]):
    """c = 2 a + b."""
    block = ct.bid(0)
    left = ct.load(a, index=(block,), shape=(TILE,), padding_mode=ct.PaddingMode.ZERO)
    right = ct.load(b, index=(block,), shape=(TILE,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(c, index=(block,), tile=left + left + right)
'''

REFERENCE = """
def double_add(xp, *, a, b, TILE):
    return 2 * a.astype(xp.float64) + b
"""

BUILD = """
tile_operator(
    name = "op",
    src = "op.py",
    reference = "reference.py",
    grids = {"double_add": ["cdiv(a.shape[0], TILE)"]},
    cases = [
        launch(
            name = "f32_{}".format(n),
            kernel = "double_add",
            args = [array("f32", [n]), array("f32", [n]), output("f32", [n]), const(128)],
        )
        for n in (1, 256)
    ],
)
"""

SIGNATURES = 2


class KernelSpace(Space):
    @property
    def environment(self) -> dict[str, str]:
        """The user's own home and toolchain, but a store that knows nothing yet."""
        return {**os.environ, "TILEBUILD_CACHE_DIRECTORY": str(self.folder / "store")}

    def edit(self, old: str, new: str, path: str = "k/op.py") -> None:
        text = (self.root / path).read_text()
        assert old in text
        self.write(path, text.replace(old, new))

    def stages(self, *arguments: str) -> dict[str, int]:
        """How many actions of each stage ran in a build that ended well."""
        events = self.events("build", "--json", "//k:op", *arguments)
        assert events[-1]["exit_code"] == 0, events[-1]
        ran = Counter(e["mnemonic"] for e in events if e["event"] == "finished" and e["status"] == "ran")
        return dict(ran)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> KernelSpace:
    space = KernelSpace(tmp_path_factory.mktemp("kernels"))
    space.write("tilebuild.toml", 'architectures = ["sm_90"]\n')
    space.write("k/BUILD", BUILD)
    space.write("k/op.py", KERNEL)
    space.write("k/reference.py", REFERENCE)
    counts = space.stages()
    assert counts["PythonIr"] == SIGNATURES
    assert counts["CpuTest"] == 2
    return space


@pytest.fixture
def space(built: KernelSpace) -> Iterator[KernelSpace]:
    """The built workspace; whatever the test edits is put back."""
    texts = {path: path.read_text() for path in (built.root / "k").iterdir()} | {
        built.root / "tilebuild.toml": (built.root / "tilebuild.toml").read_text()
    }
    yield built
    for path, text in texts.items():
        path.write_text(text)


#: What runs when the Tile IR stays the same: both front ends look, and nobody assembles or tests.
FRONT_ENDS = {"PythonIr": SIGNATURES, "Translate": 1, "CargoCheck": 1, "RustIr": SIGNATURES}

EDITS: dict[str, Callable[[KernelSpace], None]] = {
    "a comment": lambda space: space.edit("    block =", "    # which block this is\n    block ="),
    "a docstring": lambda space: space.edit("c = 2 a + b.", "Twice a, and b."),
    "a local name": lambda space: space.edit("right", "second"),
    "empty lines": lambda space: space.edit("import cuda.tile as ct\n", "import cuda.tile as ct\n\n\n"),
    "an unused helper": lambda space: space.edit("    return x\n", "    return (x, x)\n"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_that_leaves_the_ir_alone_stops_at_rust_ir(space: KernelSpace, name: str) -> None:
    EDITS[name](space)
    ran = space.stages()
    ran.pop("PublishPort", None)  # the Rust text may carry the comment, and is published again then
    assert {stage: count for stage, count in ran.items() if count > FRONT_ENDS.get(stage, 0)} == {}


def test_an_untouched_kernel_runs_nothing(space: KernelSpace) -> None:
    assert space.stages() == {}
    assert space.stages("--no-workers") == {}


def test_a_changed_constant_runs_everything_of_its_signatures(space: KernelSpace) -> None:
    space.edit("const(128)", "const(64)", "k/BUILD")
    ran = space.stages()
    assert ran["PythonIr"] == SIGNATURES
    assert ran["Assemble"] >= 2 * SIGNATURES
    assert ran["Compare"] >= SIGNATURES
    assert ran["CpuTest"] == 2


def test_a_changed_computation_runs_everything(space: KernelSpace) -> None:
    space.edit("left + left + right", "left + right + left")
    ran = space.stages()
    assert ran["PythonIr"] == SIGNATURES
    assert ran["CpuTest"] == 2


def test_a_case_with_a_known_signature_runs_one_test(space: KernelSpace) -> None:
    space.edit("(1, 256)", "(1, 256, 512)", "k/BUILD")
    assert space.stages() == {"CpuTest": 1, "Summarize": 1}


def test_a_changed_reference_runs_tests_only(space: KernelSpace) -> None:
    space.edit("2 * a", "a + a", "k/reference.py")
    ran = space.stages()
    assert set(ran) <= {"CpuTest", "Summarize"}
    assert ran["CpuTest"] == 2


def test_an_added_architecture_runs_its_column(space: KernelSpace) -> None:
    space.write("tilebuild.toml", 'architectures = ["sm_90", "sm_120"]\n')
    ran = space.stages()
    assert ran["PythonIr"] == SIGNATURES
    assert ran["RustIr"] <= 2 * SIGNATURES
    assert ran["Assemble"] <= 2 * SIGNATURES
    assert ran["Compare"] == SIGNATURES
    assert "CpuTest" not in ran


def test_fresh_processes_make_the_same(built: KernelSpace, tmp_path: Path) -> None:
    """What the warm worker made and what fresh processes make has equal keys and equal digests."""
    fresh = KernelSpace(tmp_path)
    for name in ("tilebuild.toml", "k/BUILD", "k/op.py", "k/reference.py"):
        fresh.write(name, (built.root / name).read_text())
    fresh.stages("--no-workers")
    assert _results(built) >= _results(fresh)
    assert len(_results(fresh)) > 10


def _results(space: KernelSpace) -> set[tuple[str, str]]:
    """Key and content of every result in the store, without times."""
    found = set()
    for file in (space.folder / "store").rglob("ac/*/*"):
        entry = json.loads(file.read_bytes())
        found.add((entry["key"], json.dumps(entry["outputs"])))
    return found
