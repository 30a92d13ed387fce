"""The verdict of a comparison keeps its meaning as JSON, in the words of the published schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tilebuild
from tilebuild import verdict
from tilebuild.verdict import Comparison, Difference

SCHEMA = json.loads((Path(tilebuild.__file__).parent / "schema" / "comparison.json").read_text())

FULL = Comparison(
    interface="trailing-unused",
    evidence=(verdict.SAME_MACHINE_CODE, verdict.SAME_NORMAL_FORM),
    runs=16,
    texts=(1, 1, 0),
    common="ab" * 32,
    first_difference=Difference("ir", "addf in Python, subf in Rust", 3, 5),
    sizes={"python": {"registers": 32}},
    notes=("a note",),
)


@pytest.mark.parametrize("comparison", [FULL, Comparison("same", (verdict.DIFFERENT,))])
def test_json_keeps_everything(comparison: Comparison) -> None:
    data = json.loads(json.dumps(comparison.to_json()))
    assert Comparison.from_json(data).to_json() == data
    assert data["headline"] == comparison.evidence[0]


def test_the_schema_has_the_same_words() -> None:
    assert set(FULL.to_json()) == set(SCHEMA["properties"]) == set(SCHEMA["required"])
    assert tuple(SCHEMA["$defs"]["evidence"]["enum"]) == verdict.EVIDENCE
    assert tuple(SCHEMA["properties"]["interface"]["enum"]) == verdict.INTERFACES
    assert SCHEMA["properties"]["schema"]["const"] == verdict.SCHEMA_VERSION


def test_other_schemas_are_refused() -> None:
    with pytest.raises(ValueError, match="schema 9"):
        Comparison.from_json(FULL.to_json() | {"schema": 9})


def test_evidence_is_ordered() -> None:
    ranks = [verdict.evidence_rank(e) for e in verdict.EVIDENCE]
    assert ranks == sorted(ranks)
