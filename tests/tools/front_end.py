"""Runs python_ir in a folder of its own, in this process, for the tests beside it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tilebuild import toolchain
from tilebuild.diagnostics import Diagnostic
from tilebuild.signature import Constant, Parameter, ScalarParameter, Signature, array_parameter, signature
from tilebuild.tools import python_ir

SOFTMAX = """
import cuda.tile as ct

@ct.kernel(occupancy=2)
def softmax(x, out, n_rows: int, TILE: ct.Constant[int]):
    for row in range(ct.bid(0), n_rows, ct.num_blocks(0)):
        logits = ct.load(x, index=(row, 0), shape=(1, TILE), padding_mode=ct.PaddingMode.NEG_INF)
        logits = ct.astype(logits, ct.float32)
        row_max = ct.max(logits, axis=1, keepdims=True)
        numerator = ct.exp(logits - row_max)
        denominator = ct.sum(numerator, axis=1, keepdims=True)
        ct.store(out, index=(row, 0), tile=ct.astype(numerator / denominator, out.dtype))
"""


def matrix(dtype: str = "f16") -> Parameter:
    return array_parameter(dtype, [256, 1024], [1024, 1])


def softmax_signature(**hints: Any) -> Signature:
    return signature([matrix(), matrix(), ScalarParameter("int32"), Constant(1024)], hints)


@dataclass(frozen=True)
class Answer:
    """All that python_ir wrote."""

    folder: Path

    def json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    @property
    def ok(self) -> bool:
        return bool(self.json("status.json")["ok"])

    @property
    def byte_code(self) -> bytes:
        return (self.folder / "kernel.tilebc").read_bytes()

    @property
    def text(self) -> str:
        return (self.folder / "kernel.tileir").read_text()

    @property
    def diagnostic(self) -> Diagnostic:
        (data,) = self.json("status.json")["diagnostics"]
        return Diagnostic.from_json(data)


class FrontEnd:
    """`compile` writes the given sources into a fresh folder and runs the tool there."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root = root
        self._monkeypatch = monkeypatch
        self._count = 0
        monkeypatch.setenv("TILEBUILD_TOOL_TILEIRDISASM", toolchain.tool("tileirdisasm").path)

    def compile(
        self,
        kernel: str,
        of: Signature,
        source: str = "",
        *,
        files: Mapping[str, str] | None = None,
        main: str = "src.py",
        arch: str = "sm_90",
    ) -> Answer:
        self._count += 1
        folder = self._root / f"action{self._count}"
        for path, text in {**(files or {}), **({main: source} if source else {})}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(textwrap.dedent(text))
        (folder / "signature.json").write_text(json.dumps(of.to_json()))
        self._monkeypatch.chdir(folder)
        arguments = ["--source", main, "--kernel", kernel, "--signature", "signature.json", "--arch", arch]
        assert python_ir.main(arguments) == 0
        return Answer(folder)
