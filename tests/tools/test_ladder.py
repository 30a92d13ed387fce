"""The judge, the choice and the summary: pure functions over verdict files."""

from __future__ import annotations

from typing import Any

import pytest

from tilebuild.diagnostics import Blame, Diagnostic
from tilebuild.port import Choice, InstanceVerdict, RungVerdict
from tilebuild.tools.choose import choose
from tilebuild.tools.judge import judge, original
from tilebuild.tools.summarize import summarize

REFUSAL = Diagnostic("print of a string is not translated", Blame.KERNEL)
FINE = {"ok": True}
GATES = {"evidence": "same-machine-code"}


def translation(**changes: Any) -> dict[str, Any]:
    return {"style": "safe", "unsafe_lines": 0, "refused": None, "notes": []} | changes


def comparison(headline: str = "same-machine-code", **changes: Any) -> dict[str, Any]:
    return {"headline": headline, "interface": "same", "flagged": False, "first_difference": None} | changes


def rung(name: str, headline: str = "same-machine-code", style: str = "raw", reason: str = "") -> RungVerdict:
    evidence = {"s/sm_90": InstanceVerdict(headline, "same")}
    return RungVerdict(name, style, 0, evidence, {}, reason)


def test_an_original_that_cannot_be_assembled_is_no_difference() -> None:
    status = original(FINE, {"ok": False, "message": "error: failed to compile Tile IR program"})
    verdict = judge(
        "safe",
        translation(),
        FINE,
        {"s/sm_90": status},
        {"s/sm_90": FINE},
        {"s/sm_90": comparison("different")},
    )
    assert verdict.settled
    gate = summarize("//k:k", GATES, [choose("k", [verdict])], [])["gates"][0]
    assert gate["state"] == "python-fails"
    assert original(FINE, {"ok": True}) == FINE


def unchecked(name: str, headline: str, *words: Diagnostic) -> RungVerdict:
    evidence = {"s/sm_90": InstanceVerdict(headline, "same")}
    return RungVerdict(name, "typed", 0, evidence, {}, "does not compile: unused variable", check=words)


def test_what_cargo_refuses_passes_no_gate() -> None:
    refused = unchecked("typed", "same-machine-code", REFUSAL)
    assert RungVerdict.from_json(refused.to_json()) == refused
    choice = choose("k", [refused])
    verdict = summarize("//k:k", GATES, [choice], [])
    assert not verdict["ok"]
    assert verdict["gates"][0]["why"] == "k: does not compile: unused variable"
    assert verdict["kernels"][0]["reason"] == "does not compile: unused variable"
    assert verdict["diagnostics"] == [REFUSAL.to_json()]


def test_what_cargo_accepts_is_chosen_before_better_evidence() -> None:
    choice = choose(
        "k", [unchecked("typed", "same-machine-code"), rung("raw", "same-ir", reason="s: same-ir")]
    )
    assert choice.chosen is not None
    assert choice.chosen.rung == "raw"


def test_identical_machine_code_settles_the_matter() -> None:
    verdict = judge(
        "safe", translation(), FINE, {"s/sm_90": FINE}, {"s/sm_90": FINE}, {"s/sm_90": comparison()}
    )
    assert verdict.settled
    assert RungVerdict.from_json(verdict.to_json()) == verdict


@pytest.mark.parametrize(
    ("translated", "check", "compared", "reason"),
    [
        (
            translation(refused=[REFUSAL.to_json()]),
            FINE,
            comparison(),
            "cannot express it: print of a string",
        ),
        (
            translation(),
            {"ok": False, "diagnostics": [REFUSAL.to_json()]},
            comparison(),
            "does not compile: print",
        ),
        (translation(), FINE, comparison("same-ir"), "s/sm_90: same-ir"),
        (
            translation(),
            FINE,
            comparison(interface="permuted"),
            "s/sm_90: parameters are laid out differently",
        ),
    ],
)
def test_whatever_falls_short_asks_for_the_next_rung(
    translated: dict[str, Any], check: dict[str, Any], compared: dict[str, Any], reason: str
) -> None:
    verdict = judge("safe", translated, check, {"s/sm_90": FINE}, {"s/sm_90": FINE}, {"s/sm_90": compared})
    assert verdict.reason.startswith(reason)


def test_a_kernel_that_python_refuses_needs_no_rung() -> None:
    refused = {"ok": False, "diagnostics": [REFUSAL.to_json()]}
    verdict = judge(
        "safe",
        translation(),
        FINE,
        {"s/sm_90": refused},
        {"s/sm_90": FINE},
        {"s/sm_90": comparison("different")},
    )
    assert verdict.settled
    assert not verdict.evidence
    assert verdict.python_fails == {"s/sm_90": (REFUSAL,)}


def test_the_first_settled_rung_is_the_port() -> None:
    choice = choose(
        "k", [rung("safe", "different", "safe", "text differs"), rung("typed", style="typed"), rung("raw")]
    )
    assert choice.chosen is not None
    assert choice.chosen.rung == "typed"
    assert [f.rung for f in choice.failed] == ["safe"]
    assert Choice.from_json(choice.to_json()) == choice


def test_without_an_identical_rung_the_best_evidence_wins_then_the_safest() -> None:
    rungs = [
        rung("safe", "different", "safe", "no"),
        rung("typed", "same-ir", "typed", "no"),
        rung("raw", "same-ir", "raw", "no"),
    ]
    choice = choose("k", rungs)
    assert choice.chosen is not None
    assert choice.chosen.rung == "typed"
    assert [f.rung for f in choice.failed] == ["safe", "raw"]


def test_a_kernel_that_no_rung_expresses_is_refused_in_the_words_of_the_last() -> None:
    refused = RungVerdict("raw", "raw", 0, {}, {}, "cannot express it", (REFUSAL,))
    choice = choose("k", [refused])
    assert choice.chosen is None
    assert choice.refused == (REFUSAL,)
    verdict = summarize("//p:k", GATES, [choice], [])
    assert not verdict["ok"]
    assert verdict["diagnostics"] == [REFUSAL.to_json()]


def test_weaker_evidence_fails_the_gate_unless_it_is_lowered() -> None:
    choice = choose("k", [rung("raw", "same-ir", reason="no")])
    assert not summarize("//p:k", GATES, [choice], [])["ok"]
    assert summarize("//p:k", {"evidence": "same-ir"}, [choice], [])["ok"]


def test_a_failed_cpu_test_fails_the_operator_and_a_skipped_one_is_no_pass() -> None:
    choice = choose("k", [rung("raw")])
    failed = {"state": "failed", "cases": [{"name": "odd", "state": "failed"}]}
    skipped = {"state": "not-applicable", "cases": [{"name": "huge", "state": "not-applicable"}]}
    assert not summarize("//p:k", GATES, [choice], [failed, skipped])["ok"]
    gate = summarize("//p:k", GATES, [choice], [skipped])["gates"][1]
    assert gate["state"] == "not-applicable"
