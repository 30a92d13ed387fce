"""Case files of the translator: a Python kernel, how it is launched, and the Rust that is expected of each
rung.

    # what the case is about
    --- kernel NAME
    import cuda.tile as ct …
    --- launch
    array f16 4096 1024
    scalar int32
    const 1024
    --- rust typed
    …the file that the translator writes…
    --- refused safe
    …the fact of the refusal…
    --- evidence
    same-machine-code on sm_90: typed

`TILEBUILD_UPDATE_GOLDEN=1` rewrites the expected sections from what the translator does now.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from tilebuild import toolchain
from tilebuild.signature import Constant, Parameter, ScalarParameter, array_parameter, signature
from tilebuild.signature import ListParameter as List
from tilebuild.tools import python_ir, translate

FOLDER = Path(__file__).parent / "cases"


@dataclass
class Case:
    path: Path
    title: str
    kernel: str
    source: str
    launch: str
    expected: dict[str, str] = field(default_factory=dict)  # by section head: "rust typed", "refused safe"
    evidence: str = ""

    @property
    def architecture(self) -> str:
        """`target sm_100` among the lines of the launch, else sm_90."""
        found = [line.split()[1] for line in self.launch.splitlines() if line.startswith("target ")]
        return found[0] if found else "sm_90"

    @property
    def rungs(self) -> list[str]:
        return [head.split()[1] for head in self.expected]

    def write(self) -> None:
        parts = [
            f"# {self.title}",
            f"--- kernel {self.kernel}",
            self.source.rstrip(),
            "--- launch",
            self.launch,
        ]
        for head, text in self.expected.items():
            parts += [f"--- {head}", text.rstrip()]
        if self.evidence:
            parts += ["--- evidence", self.evidence]
        self.path.write_text("\n".join(parts) + "\n")


def read(path: Path) -> Case:
    head, *sections = ("\n" + path.read_text()).split("\n--- ")
    case = Case(path, head.strip().lstrip("# "), "", "", "")
    for section in sections:
        name, _, body = section.partition("\n")
        if name.startswith("kernel"):
            case.kernel, case.source = name.split()[1], body.rstrip() + "\n"
        elif name == "launch":
            case.launch = body.strip()
        elif name == "evidence":
            case.evidence = body.strip()
        else:
            case.expected[name] = body.rstrip() + "\n"
    return case


def parameters(launch: str) -> list[Parameter]:
    """`array f16 4096 1024 [int64] [strides=1,64]`, `list f32 64 64`, `scalar int32`, `const 1024`."""
    found: list[Parameter] = []
    for line in launch.splitlines():
        kind, *words = line.split()
        if kind == "target":
            continue
        if kind == "const":
            found.append(Constant(json.loads(words[0])))
        elif kind == "scalar":
            found.append(ScalarParameter(words[0]))
        else:
            found.append(_array(kind, words))
    return found


def _array(kind: str, words: list[str]) -> Parameter:
    dtype, *rest = words
    shape = [int(w) for w in rest if w.isdigit()]
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    for word in rest:
        if word.startswith("strides="):
            strides = [int(n) for n in word.removeprefix("strides=").split(",")]
    array = array_parameter(dtype, shape, strides, index_dtype="int64" if "int64" in rest else "int32")
    return List(array, (), False) if kind == "list" else array


def python_side(case: Case, folder: Path) -> dict[str, object]:
    """Runs the front end in `folder`, which is the current one; returns its status."""
    side = folder / "s" / case.architecture
    side.mkdir(parents=True)
    (folder / "kernel.py").write_text(case.source)
    declared = signature(parameters(case.launch))
    (folder / "s" / "signature.json").write_text(json.dumps(declared.to_json()))
    arguments = ["--source", "kernel.py", "--kernel", case.kernel, "--signature", "s/signature.json"]
    python_ir.main([*arguments, "--arch", case.architecture, "--out-dir", str(side)])
    status = json.loads((side / "status.json").read_text())
    assert isinstance(status, dict)
    return status


def translated(case: Case, rung: str, folder: Path) -> tuple[str, str]:
    """The head and the text of the section that the translator makes of a rung now."""
    out = folder / rung
    out.mkdir()
    translate.main(["--kernel", case.kernel, "--rung", rung, "--source", "kernel.py", "--out-dir", str(out)])
    instances = json.loads((out / "instances.json").read_text())
    if instances["refused"]:
        first = instances["refused"][0]
        line = first["span"][1] if first["span"] else 0
        return f"refused {rung}", f"line {line}: {first['fact']}\n"
    return f"rust {rung}", (out / "port.rs").read_text()


def tools() -> dict[str, str]:
    """The environment in which the tools find their programs."""
    paths = {"TILEIRDISASM": toolchain.tool("tileirdisasm").path, "RUSTFMT": shutil.which("rustfmt") or ""}
    return {f"TILEBUILD_TOOL_{name}": str(path) for name, path in paths.items()}
