"""The example of a BUILD file loads, and every standard rule is in it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.loading.space import Space
from tilebuild.case import read_case
from tilebuild.label import Label
from tilebuild.loading.standard import STANDARD_RULES

EXAMPLE = Path(__file__).resolve().parents[2] / "BUILD.example"
FILES = (
    "softmax.py",
    "softmax_reference.py",
    "split_sum.py",
    "split_sum_reference.py",
    "rope.py",
    "lib/math.py",
)


def test_the_example_loads(space: Space) -> None:
    space.write("BUILD", EXAMPLE.read_text())
    space.write("rope.signatures.json", "[]")
    for file in FILES:
        space.write(file)
    loaded = space.load("//...", manual=True)
    assert [label.name for label in loaded.graph.tests([Label("", "quick")])] == ["softmax.cpu_test"]
    assert Label("", "rope.py") in loaded.graph[Label("", "sources")].deps
    assert [label.name for label in space.load("//...").roots if label.name.startswith("rope")] == []
    for name in ("softmax", "split_sum"):
        for case in loaded.graph[Label("", name)].attributes["cases"]:
            read_case(case)
    analysis = space.analyze(":count")
    assert (
        analysis.actions[0]
        .argv[-1]
        .startswith("cat softmax.py split_sum.py external/click/click/core.py rope.py")
    )


def test_the_example_shows_every_standard_rule() -> None:
    used = set(re.findall(r"^(\w+)\(", EXAMPLE.read_text(), re.MULTILINE))
    assert set(STANDARD_RULES) <= used
