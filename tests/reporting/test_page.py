"""The report as a browser shows it: rendered from a build's report, opened in a real headless Chromium."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tilebuild.report import Report, TargetResult
from tilebuild.reporting.page import page

CHROMIUM = shutil.which("chromium")
#: What a browser needs to be quiet in a container without a network.
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def operator(name: str, **changes: Any) -> TargetResult:
    device = {"name": "NVIDIA H200", "compute_capability": "9.0", "sm_count": 132}
    figures = {"python_ns": 214000.0, "rust_ns": 214200.0, "ratio": 1.0009, "floor": 0.001}
    case = {"name": "f16_<big>", "state": "measured", "why": "", "word": "tie", "method": "graph"}
    clocks = {"sm_mhz": [1755, 1980]}
    verdict = {
        "kernels": [
            {
                "kernel": name,
                "style": "safe",
                "unsafe_lines": 0,
                "interface": "same",
                "evidence": {
                    "s1": {"sm_90": "same-machine-code", "sm_100": "different"},
                    "s2": {"sm_90": "same-machine-code", "sm_100": "same-machine-code"},
                },
            }
        ],
        "cpu_test": {"passed": 3, "failed": 0, "not_applicable": 1},
        "gpu_test": [{"device": device, "passed": 2, "pending": 1, "not_applicable": 0, "cases": []}],
        "benchmark": [
            {
                "device": device,
                "cases": [case | {"figures": figures | {"low": 0.999, "high": 1.003}, "clocks": clocks}],
            }
        ],
        "gates": [{"gate": "evidence", "state": "passed", "why": ""}],
        "pending": [{"target": f"//k:{name}", "case": "f32_7", "stage": "gpu-test", "device": "NVIDIA H200"}],
    }
    return TargetResult(f"//k:{name}", "tile_operator", True, verdict=verdict | changes)


def rendered(*operators: TargetResult) -> str:
    return page(Report("build", operators, (), 1.0), "workspace <one>")


class Cells(HTMLParser):
    """The text of every cell, by the table's id."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self._rows: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._rows = self.tables[str(dict(attrs)["id"])] = []
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._rows = []

    def handle_data(self, data: str) -> None:
        if self._rows and self._rows[-1]:
            self._rows[-1][-1] += data.strip()


def cells(text: str) -> dict[str, list[list[str]]]:
    parser = Cells()
    parser.feed(text)
    return parser.tables


def test_the_page_needs_nothing_beside_itself() -> None:
    text = rendered(operator("softmax"))
    assert not re.search(r"(src|href)=|https?:|url\(|@import", text)
    assert "workspace &lt;one&gt;" in text
    assert "f16_&lt;big&gt;" in text


def test_a_workspace_without_operators() -> None:
    assert "Nothing was measured" in rendered()


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
def test_a_browser_shows_every_verdict(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(rendered(operator("softmax"), operator("matmul", benchmark=[], pending=[])))
    shown = subprocess.run(
        [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    tables = cells(shown)
    kernel = ["//k:softmaxsoftmax", "safe", "0", "same"]
    assert tables["operators"][1][:4] == kernel
    assert tables["operators"][1][4] == "same-machine-code×2"
    assert tables["operators"][1][5] == "differentsame-machine-code"
    assert "NVIDIA H200:2 passed,1 pending" in tables["operators"][1][6]
    speed = ["//k:softmaxf16_<big>", "NVIDIA H200", "214 µs", "214 µs", "1.00090.9990 to 1.0030", "", "tie"]
    assert tables["speed"][1:] == [speed]
    assert tables["pending"][1:] == [["//k:softmax", "f32_7", "gpu-test", "NVIDIA H200"]]
