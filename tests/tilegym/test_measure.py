"""What counts as a line of code, a kept name and a shim."""

from __future__ import annotations

from tests.tilegym import measure

LIBRARY = {
    "pack/kernels.py": '''
import cuda.tile as ct
from .helpers import scaled as grown

LIMIT = 3  # read by the kernel
UNUSED = 4


@ct.kernel
def kernel(x):
    """Says
    much."""
    # a comment
    a = grown(x)

    return ct.add(
        a,
        LIMIT,
    )
''',
    "pack/helpers.py": """
def scaled(x):
    return x * 2
""",
}

RUST = """//! A file.

use cutile::prelude::*;

#[cutile::module]
pub mod kernel {
    /// A helper.
    #[cuda_tile::op(name = "cuda_tile.constant", params = [])]
    pub fn constant_f16(value: f32) -> Tile<f16, { [] }> {
        unreachable!()
    }

    #[cutile::entry()]
    pub fn kernel(x: &Tensor<f32, { [-1] }>) {
        // a comment
        let x_tiles = x.partition(shape![4]);
        let row_max_2 = f(x_tiles);
        let v12 = row_max_2;
    }
}

pub fn kernel() {}
"""


def test_python_lines_count_what_the_kernel_needs() -> None:
    kernel, helper, constant = 7, 2, 1
    assert measure.python_lines(LIBRARY, "pack/kernels.py", "kernel") == kernel + helper + constant


def test_rust_lines_tell_device_from_host() -> None:
    size = measure.rust_size(RUST)
    assert (size.device, size.launchers, size.entries, size.shims) == (13, 2, 1, 1)


def test_nothing_is_nothing() -> None:
    assert measure.rust_size("") == measure.RustSize(0, 0, 0, 0)


def test_names_are_kept_in_rust_spelling() -> None:
    assert measure.kept_names(RUST, ["x", "rowMax", "x.shape[0]", "gone", "comment"]) == 3
    assert measure.numbered_names(RUST) == ["v12"]
