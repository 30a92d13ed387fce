"""The corpus: the kernels of the tilegym wheel and the signatures that its launchers ask for. Runs the front
end and the translator on them, and knows neither a build nor a verdict.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from tilebuild import toolchain
from tilebuild.signature import Signature
from tilebuild.toolchain import rust
from tilebuild.tools import python_ir, translate

ARCHITECTURES = ("sm_90", "sm_100", "sm_120")
DISTRIBUTION = "tilegym"
FOLDER = Path(__file__).parent / "corpus"
_SUFFIX = ".signatures.json"
_KERNEL_FILES = "tilegym/ops/cutile/"


@dataclass(frozen=True)
class Kernel:
    """One kernel of the wheel, with everything that it is compiled for."""

    operator: str
    name: str
    signatures: tuple[Signature, ...]

    @property
    def source(self) -> str:
        return f"{_KERNEL_FILES}{self.operator}.py"

    @property
    def instances(self) -> list[tuple[Signature, str]]:
        return [(s, architecture) for s in self.signatures for architecture in ARCHITECTURES]


def operators() -> list[str]:
    return sorted(path.name.removesuffix(_SUFFIX) for path in FOLDER.glob(f"*{_SUFFIX}"))


@cache
def kernels() -> tuple[Kernel, ...]:
    """All kernels, in the order of their operators and of their files."""
    return tuple(
        Kernel(operator, entry["kernel"], tuple(map(Signature.from_json, entry["signatures"])))
        for operator in operators()
        for entry in json.loads((FOLDER / f"{operator}{_SUFFIX}").read_text())["entries"]
    )


@cache
def library() -> dict[str, str]:
    """The texts of the wheel that kernels may be made of, by import path: what `corpus/BUILD` declares."""
    files = importlib.metadata.distribution(DISTRIBUTION).files or ()
    return {
        str(file): Path(str(file.locate())).read_text()
        for file in files
        if re.fullmatch(rf"tilegym/experimental\.py|{_KERNEL_FILES}.*\.py", str(file))
    }


@cache
def versions() -> dict[str, str]:
    """Of everything outside this repository that a verdict depends on."""
    lock = (rust.SOURCES / "Cargo.lock").read_text()
    cutile = re.search(r'name = "cutile"\nversion = "([^"]+)"', lock)
    assert cutile is not None
    wheels = {"cuda-tile": "cuda-tile", "tileiras": "nvidia-cuda-tileiras", DISTRIBUTION: DISTRIBUTION}
    return {
        **{name: importlib.metadata.version(wheel) for name, wheel in wheels.items()},
        "cutile": cutile[1],
    }


def digest(value: object) -> str:
    """A short digest of text, or of anything that JSON can hold."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return sha256(text.encode()).hexdigest()[:16]


def input_digests(kernel: Kernel) -> dict[str, str]:
    """What goes into the port of a kernel, apart from tilebuild itself."""
    return {
        "source": digest(library()[kernel.source]),
        "signatures": digest([s.to_json() | {"hints": dict(s.hints)} for s in kernel.signatures]),
        "versions": digest(versions()),
    }


def python_side(kernel: Kernel, instances: Sequence[tuple[Signature, str]], folder: Path) -> None:
    """Runs the front end for these instances in a folder, laid out as the translator reads it."""
    for path, text in library().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    with chdir(folder):
        for signature, architecture in instances:
            out = Path(signature.name, architecture)
            out.mkdir(parents=True)
            declared = Path(signature.name, "signature.json")
            declared.write_text(json.dumps(signature.to_json() | {"hints": dict(signature.hints)}))
            place = ["--source", kernel.source, "--kernel", kernel.name, "--signature", str(declared)]
            python_ir.main([*place, "--arch", architecture, "--out-dir", str(out)])
            declared.write_text(json.dumps(signature.to_json()))


def translated(kernel: Kernel, rung: str, folder: Path) -> str:
    """The Rust text of a rung; empty where the rung refuses. `python_side` has run in the folder."""
    with chdir(folder):
        place = ["--kernel", kernel.name, "--rung", rung, "--source", kernel.source]
        translate.main([*place, "--out-dir", "."])
    return (folder / "port.rs").read_text()


def python_names(folder: Path) -> list[str]:
    """The names that values have in the source, once per value, over all instances in a folder. The front
    end's own names for the lengths and strides of an array are none."""
    found: list[str] = []
    for file in sorted(folder.glob("*/*/names.json")):
        interface = json.loads(file.with_name("interface.json").read_text())
        parameters = "|".join(re.escape(p["name"]) for p in interface["parameters"])
        part = re.compile(rf"({parameters})_(shape|stride)\d+")
        names = json.loads(file.read_text())["names"]
        found += [name for name in names if name and not part.fullmatch(name)]
    return found


def uses_pointers(folder: Path) -> bool:
    """Whether an instance in a folder accesses memory by pointers."""
    access = re.compile(r"\b(load_ptr_tko|store_ptr_tko|atomic_rmw_tko|atomic_cas_tko)\b")
    return any(access.search(file.read_text()) for file in folder.glob("*/*/kernel.tileir"))


@contextmanager
def tools_in_environment() -> Iterator[None]:
    """Front end and translator find their programs in the environment, as in an action."""
    paths = {
        f"TILEBUILD_TOOL_{name.upper()}": toolchain.tool(name).path for name in ("tileirdisasm", "rustfmt")
    }
    before = dict(os.environ)
    os.environ.update(paths)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
