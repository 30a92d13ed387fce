"""Runs the CPU test on operators of this repository without the engine: loader, front end and tool."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from tests.kernels.schema import problems
from tilebuild.case import Case, read_case
from tilebuild.label import parse_label
from tilebuild.loading.loader import load
from tilebuild.tools import cpu_test, python_ir
from tilebuild.workspace import open_workspace

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "tilebuild/schema/cpu_test.json").read_text())
Edit = Callable[[str], str]


@dataclass(frozen=True)
class Operator:
    """An operator of a BUILD file, with its sources copied to a folder of its own."""

    name: str
    folder: Path
    source: str
    reference: str | None
    grids: Mapping[str, Sequence[str]]
    cases: tuple[Case, ...]

    def case(self, name: str) -> Case:
        return next(case for case in self.cases if case.name == name)

    def verdict(self, case: Case, rust: Edit = str, python: Edit = str, **plan: Any) -> dict[str, Any]:
        """The verdict of a case whose two programs are Python's, each after an edit of its text."""
        steps = [
            self._programs(case, index, {"rust": rust, "python": python}) for index in range(len(case.steps))
        ]
        document = {
            "schema": 1,
            "operator": self.name,
            "reference": self.reference,
            "inputs": None,
            "bounds": {},
            "grids": self.grids,
            "cases": [{"case": case.to_json(), "steps": steps}],
            **plan,
        }
        with inside(self.folder):
            Path("plan.json").write_text(json.dumps(document))
            assert cpu_test.main(["--plan", "plan.json", "--out", "verdict.json"]) == 0
            verdict: dict[str, Any] = json.loads(Path("verdict.json").read_text())
        assert not problems(verdict, SCHEMA, SCHEMA)
        assert verdict["state"] == verdict["cases"][0]["state"]
        found: dict[str, Any] = verdict["cases"][0]
        return found

    def _programs(self, case: Case, index: int, edits: Mapping[str, Edit]) -> dict[str, str]:
        step = case.steps[index]
        signature = case.signature(step)
        out = self.folder / step.kernel / signature.name
        if not out.exists():
            out.mkdir(parents=True)
            (out / "signature.json").write_text(json.dumps(signature.to_json()))
            self._compile(step.kernel, out)
        text = (out / "kernel.tileir").read_text()
        for side, edit in edits.items():
            (out / f"{side}.tileir").write_text(edit(text))
        local = out.relative_to(self.folder)
        return {side: f"{local}/{side}.tileir" for side in edits} | {"interface": f"{local}/interface.json"}

    def _compile(self, kernel: str, out: Path) -> None:
        argv = ["--source", self.source, "--kernel", kernel, "--arch", "sm_90", "--out-dir", str(out)]
        with inside(self.folder):
            python_ir.main([*argv, "--signature", str(out / "signature.json")])
        status = json.loads((out / "status.json").read_text())
        assert status["ok"], status

    def with_reference(self, text: str) -> Operator:
        """The same operator with another reference."""
        name = f"{self.name}_other_reference.py"
        (self.folder / name).write_text(text)
        return replace(self, reference=name)


def operator(label: str, folder: Path) -> Operator:
    """An operator of this repository."""
    workspace, settings = open_workspace(ROOT)
    parsed = parse_label(label)
    attributes = load(workspace, settings, [label]).graph[parsed].attributes
    for key in ("src", "reference"):
        shutil.copy(ROOT / parsed.package / attributes[key], folder)
    return Operator(
        parsed.name,
        folder,
        attributes["src"],
        attributes["reference"],
        attributes["grids"],
        tuple(read_case(case) for case in attributes["cases"]),
    )


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """As an action has it: a folder of its own, and the declared tools in the environment."""
    before = Path.cwd()
    root = distribution("nvidia-cuda-tileiras").locate_file("nvidia/cu13/bin/tileirdisasm")
    os.environ["TILEBUILD_TOOL_TILEIRDISASM"] = str(root)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        del os.environ["TILEBUILD_TOOL_TILEIRDISASM"]
