"""The texts that people read while a build runs and after it."""

from __future__ import annotations

import io
from typing import Any

import pytest

from tilebuild.action import Action, Artifact, Tool
from tilebuild.diagnostics import Blame, Diagnostic
from tilebuild.events import ActionFinished, Outcome, PhaseStarted, Progress, RunningAction, Status
from tilebuild.report import ExitCode, Report, TargetResult
from tilebuild.reporting.lines import LineReporter
from tilebuild.reporting.live import LiveReporter
from tilebuild.reporting.summary import summary, up_to_date
from tilebuild.reporting.text import Style, columns, seconds

PLAIN = Style(False)


def action(mnemonic: str = "Assemble", detail: str = "softmax s0/sm_90") -> Action:
    output = (("o", Artifact(f"{mnemonic}/{detail}", source=False)),)
    return Action(mnemonic, ("t",), (), output, (Tool("t", "1"),), label="//k:softmax", detail=detail)


def verdict(**changes: Any) -> dict[str, Any]:
    kernel = {
        "kernel": "softmax",
        "style": "typed",
        "rung": "typed",
        "unsafe_lines": 2,
        "failed_rungs": [{"rung": "safe", "reason": "a load could go out of bounds"}],
        "evidence": {
            "s0": {"sm_90": "same-machine-code", "sm_100": "same-machine-code"},
            "s1": {"sm_90": "same-machine-code", "sm_100": "same-ir"},
        },
        "interface": "same",
        "flagged": [],
    }
    test = {"passed": 3, "failed": 0, "not_applicable": 1, "cases": []}
    return {"schema": 1, "kernels": [kernel], "cpu_test": test, "gates": [], "ok": True} | changes


def report(*targets: TargetResult, verb: str = "build", **changes: Any) -> Report:
    outcomes = (
        Outcome(action("PythonIr"), Status.RAN, seconds=0.5),
        Outcome(action(), Status.HIT, seconds=2.0),
        Outcome(action("Compare"), Status.SKIPPED),
    )
    fields: dict[str, Any] = {"verb": verb, "targets": targets, "outcomes": outcomes, "seconds": 1.25}
    return Report(**fields | changes)


def operator(**changes: Any) -> TargetResult:
    fields: dict[str, Any] = {
        "label": "//k:softmax",
        "kind": "tile_operator",
        "ok": True,
        "verdict": verdict(),
    }
    return TargetResult(**fields | changes)


def test_an_operator_is_a_table() -> None:
    assert summary(report(operator()), PLAIN) == (
        "//k:softmax  ok\n"
        "  kernel   style  rung   unsafe  interface  sm_90                 sm_100\n"
        "  softmax  typed  typed       2  same       same-machine-code ×2  same-machine-code ×1, same-ir ×1\n"
        "    rung safe failed: a load could go out of bounds\n"
        "  cpu test: 3 passed, 1 not applicable\n"
        "stage     ran  cached  skipped  failed    time\n"
        "PythonIr    1       ·        ·       ·  0.50 s\n"
        "Assemble    ·       1        ·       ·       ·\n"
        "Compare     ·       ·        1       ·       ·\n"
        "build: 1 target ok; actions: 1 ran, 1 cached, 1 not needed; 1.2 s\n"
    )


def test_a_failed_gate_ends_the_summary() -> None:
    failed = operator(ok=False, problem="gate evidence: failed: different")
    lines = summary(report(failed), PLAIN).splitlines()
    assert lines[0] == "//k:softmax  FAILED"
    assert lines[-2] == "FAILED //k:softmax: gate evidence: failed: different"
    assert lines[-1].startswith("build: 1 of 1 target failed; ")


def test_what_was_not_tested_has_not_passed() -> None:
    nothing = verdict(cpu_test={"passed": 0, "failed": 0, "not_applicable": 2, "cases": []})
    target = operator(test=True, label="//k:softmax.cpu_test", verdict=nothing)
    assert "PASSED" not in summary(report(target, verb="test"), PLAIN)


def test_failed_cases_are_named() -> None:
    case = {"name": "f32_17", "state": "failed", "reason": "element 3: 1.0, reference 2.0"}
    bad = verdict(cpu_test={"passed": 0, "failed": 1, "cases": [case]}, ok=False)
    target = operator(test=True, ok=False, verdict=bad, problem="gate cpu-test: failed")
    assert "  f32_17: element 3: 1.0, reference 2.0\n" in summary(report(target, verb="test"), PLAIN)


def test_untested_cases_say_why() -> None:
    reason = "too large for the interpreter"
    cases = [{"name": name, "state": "not-applicable", "reason": reason} for name in "abc"]
    untested = {"passed": 0, "failed": 0, "not_applicable": 3, "cases": cases}
    lines = summary(report(operator(verdict=verdict(cpu_test=untested))), PLAIN).splitlines()
    assert "    a and 2 more cases: too large for the interpreter" in lines


def test_a_choice_that_is_not_good_says_so() -> None:
    (kernel,) = verdict()["kernels"]
    chosen = kernel | {"reason": "does not compile: unused variable"}
    text = summary(report(operator(verdict=verdict(kernels=[chosen]))), PLAIN)
    assert "    rung typed was chosen although: does not compile: unused variable\n" in text


def test_a_target_without_a_verdict_shows_its_error_and_no_files() -> None:
    files = ("k/softmax/softmax.rs", "k/softmax/softmax.port.json")
    failed = operator(ok=False, verdict=None, files=files, problem="CpuTest f32_1 failed: ValueError: bad")
    lines = summary(report(failed), PLAIN).splitlines()
    assert lines[:2] == ["//k:softmax  FAILED", "  CpuTest f32_1 failed: ValueError: bad"]
    assert lines[-2] == "FAILED //k:softmax: CpuTest f32_1 failed: ValueError: bad"
    assert "softmax.rs" not in "".join(lines)


@pytest.mark.parametrize("ok", [True, False])
def test_a_build_shows_an_operator_once(ok: bool) -> None:
    test = operator(label="//k:softmax.cpu_test", test=True, ok=ok, operator="//k:softmax", problem="bad")
    text = summary(report(operator(ok=ok, problem="bad"), test), PLAIN)
    assert text.count("cpu test: 3 passed") == 1
    assert text.count("FAILED //k:softmax") == (0 if ok else 1)
    assert ("build: 1 target ok" if ok else "build: 1 of 1 target failed") in text


def test_a_build_shows_a_test_that_failed_alone() -> None:
    test = operator(label="//k:softmax.cpu_test", test=True, ok=False, operator="//k:softmax", problem="bad")
    assert "FAILED //k:softmax.cpu_test: bad" in summary(report(operator(), test), PLAIN)
    assert len(report(operator(), test, verb="test").shown) == 2


def test_a_no_op_says_the_same_of_targets() -> None:
    text = up_to_date(report(operator()), PLAIN)
    assert "same-machine-code ×2" in text
    assert text.endswith("build: 1 target ok; nothing to do\n")


EXIT_CODES = [
    (report(operator()), ExitCode.OK),
    (report(operator(ok=False)), ExitCode.BUILD_FAILED),
    (report(operator(ok=False), verb="test"), ExitCode.TESTS_FAILED),
    (report(operator(ok=False, verdict=None), verb="test"), ExitCode.BUILD_FAILED),
    (report(verb="test"), ExitCode.NO_TESTS),
    (report(operator(), interrupted=True), ExitCode.INTERRUPTED),
    (report(operator(ok=False), dry_run=True), ExitCode.OK),
    (report(operator(), problems=(Diagnostic("x", Blame.BUILD_FILE),)), ExitCode.BUILD_FAILED),
]


@pytest.mark.parametrize(("found", "code"), EXIT_CODES)
def test_exit_codes(found: Report, code: ExitCode) -> None:
    assert found.exit_code is code


def test_each_problem_is_told_once() -> None:
    told = Diagnostic("exp needs a float", Blame.KERNEL)
    outcomes = tuple(Outcome(action(detail=d), Status.FAILED, diagnostics=(told,)) for d in "abc")
    targets = (operator(ok=False, diagnostics=(told,)),)
    (message,) = report(*targets, outcomes=outcomes).messages
    assert message.diagnostic == told
    assert message.render() == (
        "kernel error: exp needs a float\n  in: Assemble //k:softmax a, and 2 more actions"
    )


def test_a_problem_of_verdicts_names_its_targets() -> None:
    told = Diagnostic("exp needs a float", Blame.KERNEL)
    targets = [operator(label=f"//k:{name}", ok=False, diagnostics=(told,)) for name in "ab"]
    (message,) = report(*targets, outcomes=()).messages
    assert message.render().splitlines()[-1] == "  in: //k:a, and 1 more target"
    assert message.to_json()["targets"] == ["//k:a", "//k:b"]


def test_lines_for_nobody_in_particular() -> None:
    stream = io.StringIO()
    reporter = LineReporter(stream)
    reporter(PhaseStarted("loading"))
    reporter(ActionFinished(Outcome(action(), Status.HIT)))
    reporter(ActionFinished(Outcome(action(), Status.RAN, seconds=0.25)))
    for elapsed in (10.0, 16.0, 20.0, 31.5):
        reporter(Progress(0, 1, (RunningAction(action("BuildDriver", ""), elapsed, "compiling 57/101"),)))
    reporter.close()
    assert stream.getvalue().splitlines() == [
        "Assemble //k:softmax softmax s0/sm_90 ran in 0.25 s",
        "BuildDriver //k:softmax still runs after 16.0 s: compiling 57/101",
        "BuildDriver //k:softmax still runs after 31.5 s: compiling 57/101",
    ]


def test_the_live_region_is_rewritten_and_removed() -> None:
    stream = io.StringIO()
    reporter = LiveReporter(stream, PLAIN)
    reporter(PhaseStarted("loading"))
    reporter(ActionFinished(Outcome(action(), Status.FAILED)))
    reporter.close()
    text = stream.getvalue()
    assert text.startswith("loading …\n\x1b[1A\x1b[J")
    assert "failed: Assemble //k:softmax softmax s0/sm_90\n" in text


def test_small_pieces() -> None:
    assert [seconds(s) for s in (0.004, 0.99, 1.0, 59.9, 60, 125.4)] == [
        "0.00 s", "0.99 s", "1.0 s", "59.9 s", "1 min 0 s", "2 min 5 s",
    ]  # fmt: skip
    assert columns([["a", "10"], ["bcd", "2"]], right=frozenset({1})) == ["a    10", "bcd   2"]


PENDING = {
    "target": "//k:softmax",
    "kernels": ["softmax"],
    "case": "f16_5x17",
    "stage": "gpu-test",
    "device": "NVIDIA H200 (compute capability 9.0, 132 SMs)",
    "why": "",
    "command": "tilebuild bundle export //k:softmax --out DIR",
}
TESTED = {"device": {"name": "NVIDIA H200"}, "passed": 2, "pending": 1, "not_applicable": 0}


def test_pending_is_named_and_no_pass() -> None:
    waiting = operator(verdict=verdict(gpu_test=[TESTED], pending=[PENDING]))
    text = summary(report(waiting), PLAIN)
    assert "//k:softmax  ok, but pending on a GPU" in text
    assert "gpu test on NVIDIA H200: 2 passed, 1 pending" in text
    assert "`tilebuild bundle export //k:softmax --out DIR`" in text
    assert "build: 0 of 1 target ok, 1 pending" in text
    assert "case f16_5x17" not in text
    assert report(waiting).exit_code is ExitCode.OK


def test_pending_fails_tests_unless_allowed() -> None:
    waiting = operator(label="//k:softmax.gpu_test", test=True, verdict=verdict(pending=[PENDING]))
    asked = report(waiting, verb="test")
    assert asked.exit_code is ExitCode.TESTS_FAILED
    assert "//k:softmax.gpu_test  PENDING" in summary(asked, PLAIN)
    place = "kernel softmax, case f16_5x17, gpu-test on NVIDIA H200 (compute capability 9.0, 132 SMs)"
    assert f"PENDING //k:softmax: {place}" in summary(asked, PLAIN)
    assert report(waiting, verb="test", allow_pending=True).exit_code is ExitCode.OK
