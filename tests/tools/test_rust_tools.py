"""rust_ir and cargo_check on a small port, with the real driver, rustc, clippy and rustfmt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tilebuild import toolchain
from tilebuild.diagnostics import Diagnostic
from tilebuild.tileir.parse import parse
from tilebuild.tools import build_driver, cargo_check, rust_ir

pytestmark = pytest.mark.slow

PORT = """\
#[cutile::module]
pub mod helpers {
    use cutile::core::*;

    pub fn double<const B: i32>(x: Tile<f32, { [B] }>) -> Tile<f32, { [B] }> {
        x + x
    }
}

#[cutile::module]
pub mod vadd {
    use super::helpers::*;
    use cutile::core::*;

    /// c = 2 a + b
    #[cutile::entry()]
    pub fn vadd<const B: i32>(
        a: &Tensor<f32, { [-1] }>,
        b: &Tensor<f32, { [-1] }>,
        c: &mut Tensor<f32, { [B] }>,
    ) {
        let pid: (i32, i32, i32) = get_tile_block_id();
        let a_tiles: Partition<f32, { [B] }> = a.partition(const_shape![B]);
        let b_tiles: Partition<f32, { [B] }> = b.partition(const_shape![B]);
        let a_tile: Tile<f32, { [B] }> = a_tiles.load([pid.0]);
        let b_tile: Tile<f32, { [B] }> = b_tiles.load([pid.0]);
        c.store(double(a_tile) + b_tile);
    }
}
"""
INSTANCE = {
    "module": "vadd",
    "entry": "vadd",
    "generics": ["1024"],
    "strides": {"a": [1], "b": [1], "c": [1]},
    "spec_args": {
        "a": {
            "shape_div": [16],
            "stride_div": [1],
            "stride_one": [True],
            "base_ptr_div": 16,
            "elements_disjoint": True,
        }
    },
    "options": {"occupancy": 2},
}
RETURN = "pub fn same(x: i32) -> i32 {\n    return x;\n}\n\n"
MAP = [[17, "k.py", 3], [25, "k.py", 9], [27, "k.py", 11]]


class Rust:
    """Runs the two tools, each in a folder of its own."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root, self._count, self._monkeypatch = root, 0, monkeypatch
        for name in ("driver", "cargo", "tileirdisasm"):
            monkeypatch.setenv(f"TILEBUILD_TOOL_{name.upper()}", toolchain.tool(name).path)
        monkeypatch.chdir(root)
        assert build_driver.main(["--out", "driver.json"]) == 0
        assert json.loads((root / "driver.json").read_text()) == {"driver": toolchain.tool("driver").digest}

    def _enter(self, port: str, instance: Mapping[str, Any] | None) -> Path:
        self._count += 1
        folder = self._root / f"action{self._count}"
        folder.mkdir()
        (folder / "port.rs").write_text(port)
        (folder / "map.json").write_text(json.dumps({"lines": MAP}))
        instances = {"s1/sm_90": instance} if instance else {}
        (folder / "instances.json").write_text(json.dumps({"instances": instances}))
        self._monkeypatch.chdir(folder)
        return folder

    def ir(self, port: str, instance: Mapping[str, Any] | None = INSTANCE, arch: str = "sm_90") -> Path:
        folder = self._enter(port, instance)
        arguments = [
            "--port",
            "port.rs",
            "--instances",
            "instances.json",
            "--instance",
            "s1/sm_90",
            "--arch",
            arch,
        ]
        assert rust_ir.main(arguments) == 0
        return folder

    def check(self, port: str) -> Any:
        folder = self._enter(port, None)
        assert cargo_check.main(["--port", "port.rs", "--kernel", "vadd"]) == 0
        return json.loads((folder / "check.json").read_text())


@pytest.fixture
def rust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rust:
    return Rust(tmp_path, monkeypatch)


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def test_a_port_becomes_byte_code_with_a_line_for_each_operation(rust: Rust) -> None:
    folder = rust.ir(PORT)
    assert read(folder, "status.json") == {"ok": True}
    entry = parse((folder / "kernel.tileir").read_text())
    operations = list(entry.walk())
    locations = read(folder, "locations.json")
    assert len(locations["locations"]) == len(operations)
    doubled, added = (i for i, o in enumerate(operations) if o.name == "addf")
    assert [locations["locations"][i] for i in (doubled, added)] == [6, 27]
    assert locations["checks"] == {"discharged": 2, "hoisted": 0, "in_place": 0}
    assert len(locations["launch_checks"]) == 2
    assert entry.hints == {"sm_90": {"occupancy": 2}}


def test_comments_lines_and_local_names_leave_the_byte_code_alone(rust: Rust) -> None:
    changed = "// a comment\n\n" + PORT.replace("a_tile:", "left:").replace("double(a_tile)", "double(left)")
    first, second = rust.ir(PORT), rust.ir(changed)
    assert (first / "kernel.tilebc").read_bytes() == (second / "kernel.tilebc").read_bytes()
    assert (first / "status.json").read_bytes() == (second / "status.json").read_bytes()


def test_the_environment_does_not_matter(rust: Rust, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = (rust.ir(PORT) / "kernel.tilebc").read_bytes()
    monkeypatch.setenv("CUTILE_JIT_DEBUG", "full")
    monkeypatch.setenv("CUTILE_JIT_OPT_LEVEL", "nonsense")
    assert (rust.ir(PORT) / "kernel.tilebc").read_bytes() == plain


@pytest.mark.parametrize(
    ("change", "place", "fact"),
    [
        (("a_tiles.load([pid.0])", "a_tiles.load([pid.7])"), "k.py:9", "Index 7 access failed"),
        (("use super::helpers::*;", ""), "k.py:11", "double"),
        (("pub mod vadd", "pub mod other"), "port.rs", "no module `vadd`"),
        (("c.store(", "c.store((("), "k.py:11", "cannot parse"),
    ],
)
def test_a_refusal_of_the_rust_front_end_is_a_result(
    rust: Rust, change: tuple[str, str], place: str, fact: str
) -> None:
    folder = rust.ir(PORT.replace(*change))
    status = read(folder, "status.json")
    assert not status["ok"]
    (problem,) = (Diagnostic.from_json(d) for d in status["diagnostics"])
    assert fact in problem.fact
    assert str(problem.span).startswith(place)
    assert (folder / "kernel.tilebc").read_bytes() == b""


def test_an_empty_port_was_refused_before(rust: Rust) -> None:
    assert read(rust.ir("", None), "status.json")["refused"] is True
    assert rust.check("") == {"ok": False, "refused": True}


def test_rustc_clippy_and_rustfmt_accept_the_port(rust: Rust) -> None:
    assert rust.check(PORT) == {"ok": True}


@pytest.mark.parametrize(
    ("change", "fact", "note"),
    [
        (("pid.0]);\n        let b", "pid.5]);\n        let b"), "E0609: no field `5`", "vadd.rs:25:"),
        (
            ("#[cutile::module]\npub mod vadd", RETURN + "#[cutile::module]\npub mod vadd"),
            "clippy::needless_return",
            "",
        ),
        (("        x + x\n", "        x  +  x\n"), "rustfmt would format", ""),
        (("let pid:", "let unused = 3;\n        let pid:"), "unused_variables", ""),
    ],
)
def test_what_they_refuse_is_shown(rust: Rust, change: tuple[str, str], fact: str, note: str) -> None:
    answer = rust.check(PORT.replace(*change))
    problems = [Diagnostic.from_json(d) for d in answer["diagnostics"]]
    assert fact in problems[0].fact
    if note:
        assert str(problems[0].notes[0].span).startswith(note)
        assert str(problems[0].span) == "k.py:9"


def test_the_check_is_the_same_each_time(rust: Rust) -> None:
    broken = PORT.replace("x + x", "x + y")
    assert rust.check(broken) == rust.check(broken)
    assert rust.check(PORT) == {"ok": True}


def test_a_deleted_driver_is_built_again(rust: Rust, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = json.loads(Path(toolchain.tool("cargo").path).read_text())
    described["driver"] = str(tmp_path / "tilebuild-driver")
    (tmp_path / "cargo-1.json").write_text(json.dumps(described))
    monkeypatch.setenv("TILEBUILD_TOOL_DRIVER", described["driver"])
    assert read(rust.ir(PORT), "status.json") == {"ok": True}
    assert Path(described["driver"]).is_file()
    assert list(tmp_path.glob("tilebuild-driver*")) == [Path(described["driver"])]
