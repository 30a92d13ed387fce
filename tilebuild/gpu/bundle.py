"""Makes plans and writes bundles: folders that carry a GPU's work to another machine. Knows no target and
no cache.

    plan.json               what to run
    cubins/<digest>.cubin   both sides, each once
    files/<digest>/NAME.py  references and input makers
    runner/                 the runner, which needs Python, NumPy and CuPy

A file is named by its digest, so an entry of a plan says all there is to know about what it runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tilebuild.gpu.arguments import ArgumentError, keywords, rust_slots, slot_bytes, slots
from tilebuild.gpu.cubin import read_entry
from tilebuild.gpu.plan import PLAN_FILE, SCHEMA, files_of, read_case

_PACKAGE = Path(__file__).resolve().parent.parent
#: What the runner is made of: this library but for what makes bundles, and the nouns that it shares.
_NOUNS = ("bound.py", "fills.py", "measurement.py", "paired.py")
_NOT_NEEDED = ("bundle.py", "keys.py")
_RUNNER = "runner"


@dataclass(frozen=True)
class StepFiles:
    """What one step of a case runs. `parameters` are the kernel's, in order; `dtypes` their stated
    scalar types.
    """

    grid: tuple[int, int, int]
    python: bytes
    rust: bytes
    parameters: Sequence[str]
    dtypes: Sequence[str | None] = ()


@dataclass(frozen=True)
class Source:
    """A Python file of the user's, and the function in it."""

    name: str
    text: bytes
    function: str = "make"


def entry_of(
    target: str,
    case: Mapping[str, Any],
    steps: Sequence[StepFiles],
    identical: bool,
    reference: Source | None,
    inputs: Source | None = None,
    bounds: Mapping[str, float] | None = None,
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The entry of a case, as `Case.to_json()` writes it, in a plan; and the files that it names.

    Raises `ArgumentError` when the arguments do not fit the kernels, `CubinError` when a cubin is none.
    """
    files: dict[str, bytes] = {}
    planned = [_step(case, step, given, files) for step, given in zip(case["steps"], steps, strict=True)]
    entry = {
        "target": target,
        "case": dict(case),
        "steps": planned,
        "keys": {},
        "identical": identical,
        "reference": None,
        "inputs": None,
        "bounds": dict(bounds or {}),
    }
    if reference is not None:
        entry["reference"] = {"file": _keep(reference, files), "function": reference.function}
    if inputs is not None:
        entry["inputs"] = _keep(inputs, files)
    return entry, files


def write_bundle(
    folder: Path,
    entries: Iterable[Mapping[str, Any]],
    content: Callable[[str], bytes],
    device_class: Mapping[str, Any] | None,
) -> int:
    """Writes a bundle into an empty or new folder. `content` gives the bytes of a file that an entry names.

    Returns the bundle's size in bytes.
    """
    listed = list(entries)
    plan = {"schema": SCHEMA, "device": device_class, "cases": listed}
    files = {name: content(name) for entry in listed for name in files_of(read_case(entry))}
    files[PLAN_FILE] = (json.dumps(plan, indent=1, sort_keys=True) + "\n").encode()
    files |= runner_files()
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return sum(map(len, files.values()))


def runner_files() -> dict[str, bytes]:
    """The runner's own files, by their names in a bundle."""
    here = [path for path in sorted((_PACKAGE / "gpu").glob("*.py")) if path.name not in _NOT_NEEDED]
    files = {f"{_RUNNER}/tilebuild/gpu/{path.name}": path.read_bytes() for path in here}
    files |= {f"{_RUNNER}/tilebuild/{name}": (_PACKAGE / name).read_bytes() for name in _NOUNS}
    files[f"{_RUNNER}/tilebuild/__init__.py"] = b""
    files[f"{_RUNNER}/__main__.py"] = (_PACKAGE / "gpu" / "__main__.py").read_bytes()
    return files


def _step(
    case: Mapping[str, Any], step: Mapping[str, Any], given: StepFiles, files: dict[str, bytes]
) -> dict[str, Any]:
    python, rust = read_entry(given.python), read_entry(given.rust)
    ours = slots(case, step, given.dtypes)
    if [slot_bytes(slot) for slot in ours] != list(python.sizes):
        sizes = f"{list(python.sizes)} bytes, the case gives {[slot_bytes(slot) for slot in ours]}"
        raise ArgumentError(f"{step['kernel']!r} takes parameters of {sizes}")
    return {
        "kernel": step["kernel"],
        "grid": list(given.grid),
        "keywords": keywords(case, step, given.parameters),
        "python": {"cubin": _keep_cubin(given.python, files), "symbol": python.symbol, "slots": ours},
        "rust": {
            "cubin": _keep_cubin(given.rust, files),
            "symbol": rust.symbol,
            "slots": rust_slots(ours, rust.sizes),
        },
    }


def _keep_cubin(data: bytes, files: dict[str, bytes]) -> str:
    name = f"cubins/{sha256(data).hexdigest()}.cubin"
    files[name] = data
    return name


def _keep(source: Source, files: dict[str, bytes]) -> str:
    name = f"files/{sha256(source.text).hexdigest()}/{Path(source.name).name}"
    files[name] = source.text
    return name
