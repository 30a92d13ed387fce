"""A workspace with one small operator, built by the real tools. Results go to a store of their own.

The Rust driver comes from the user's cache and is built once if it is not there.
"""

from __future__ import annotations

import os
from collections import Counter

from tests.end_to_end.space import Space

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


class KernelSpace(Space):
    """The operator is `//k:op`, for one architecture; `rungs` says how many rungs its port took."""

    rungs = 1

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "TILEBUILD_CACHE_DIRECTORY": str(self.folder / "store")}

    def fill(self) -> None:
        self.write("tilebuild.toml", 'architectures = ["sm_90"]\n')
        self.write("k/BUILD", BUILD)
        self.write("k/op.py", KERNEL)
        self.write("k/reference.py", REFERENCE)

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
