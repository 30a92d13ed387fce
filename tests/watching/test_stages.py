from __future__ import annotations

import io
from collections.abc import Sequence

from tilebuild.action import Action, Artifact
from tilebuild.events import ActionFinished, Outcome, Status
from tilebuild.report import Report, TargetResult
from tilebuild.reporting.stages import Stages, Verdicts, target_line
from tilebuild.reporting.text import Style

PLAIN = Style(False)


def made(name: str) -> Artifact:
    return Artifact(name, source=False)


def action(mnemonic: str, output: str, guard: str = "") -> Action:
    return Action(
        mnemonic,
        argv=(mnemonic,),
        inputs=(),
        outputs=((output, made(output)),),
        tools=(),
        guard=made(guard) if guard else None,
    )


def said(actions: Sequence[Action], *ends: tuple[Action, Status, float]) -> list[str]:
    stream = io.StringIO()
    stages = Stages(stream, PLAIN)
    stages.begin(actions)
    for ended, status, seconds in ends:
        stages(ActionFinished(Outcome(ended, status, seconds=seconds)))
    stages.close()
    return [line.strip() for line in stream.getvalue().splitlines()]


def test_one_line_per_stage_when_its_last_action_ended() -> None:
    first, second, compare = action("PythonIr", "a"), action("PythonIr", "b"), action("Compare", "c")
    assert said(
        [first, second, compare],
        (first, Status.RAN, 0.25),
        (compare, Status.RAN, 0.5),
        (second, Status.RAN, 0.5),
    ) == ["Compare 0.50 s", "PythonIr ×2 0.75 s"]


def test_what_was_cached_is_not_mentioned() -> None:
    first, second = action("PythonIr", "a"), action("PythonIr", "b")
    assert said([first, second], (first, Status.HIT, 9.0), (second, Status.RAN, 0.5)) == ["PythonIr 0.50 s"]


def test_a_guarded_action_is_a_later_stage() -> None:
    first, judge = action("Translate", "a"), action("Judge", "next")
    second, other = action("Translate", "b", guard="next"), action("Judge", "settled", guard="next")
    assert said(
        [first, judge, second, other],
        (first, Status.RAN, 0.25),
        (judge, Status.RAN, 0.5),
        (second, Status.RAN, 0.75),
        (other, Status.SKIPPED, 0.0),
    ) == ["Translate 0.25 s", "Judge 0.50 s", "Translate 0.75 s"]


def test_failures_are_counted_and_a_stopped_build_says_what_it_did() -> None:
    first, second, third = (action("Assemble", name) for name in "abc")
    assert said([first, second, third], (first, Status.RAN, 1.0), (second, Status.FAILED, 1.0)) == [
        "Assemble ×2 2.0 s 1 failed"
    ]


VERDICT = {
    "kernels": [
        {
            "kernel": "softmax",
            "evidence": {
                "s0": {"sm_90": "same-machine-code", "sm_100": "same-machine-code", "sm_120": "same-ir"},
                "s1": {"sm_90": "same-machine-code", "sm_100": "same-machine-code", "sm_120": "same-ir"},
            },
        }
    ],
    "cpu_test": {"passed": 6, "failed": 0},
    "gates": [],
}


def target(label: str = "//kernels:softmax", **fields: object) -> TargetResult:
    return TargetResult(label, "tile_operator", **{"ok": True, "cached": True, **fields})  # type: ignore[arg-type]


def report(*targets: TargetResult) -> Report:
    return Report("build", targets, (), 0.9)


def test_a_target_in_one_line() -> None:
    assert target_line(target(verdict=VERDICT), PLAIN) == (
        "//kernels:softmax same-machine-code sm_90 sm_100, same-ir sm_120, cpu test 6 passed"
    )
    assert target_line(target("//text:upper"), PLAIN) == "//text:upper ok"
    failed = target(ok=False, problem="gate evidence: failed", verdict=VERDICT)
    assert target_line(failed, PLAIN) == "//kernels:softmax FAILED: gate evidence: failed"


def test_unequal_signatures_are_counted() -> None:
    kernel = {"kernel": "k", "evidence": {"s0": {"sm_90": "same-machine-code"}, "s1": {"sm_90": "different"}}}
    assert target_line(target(verdict={"kernels": [kernel]}), PLAIN) == (
        "//kernels:softmax same-machine-code ×1 and different ×1 sm_90"
    )


def test_what_is_pending_is_said() -> None:
    verdict = {**VERDICT, "gates": [{"gate": "gpu_test", "state": "pending", "why": "no GPU"}]}
    assert target_line(target(verdict=verdict), PLAIN).endswith("cpu test 6 passed, gpu_test pending")


def test_a_lone_target_is_always_told() -> None:
    verdicts = Verdicts(PLAIN)
    for _ in range(2):
        assert verdicts.lines(report(target("//:a")), 0.9) == ["//:a ok (0.90 s)"]


def test_of_many_targets_the_news_are_told() -> None:
    verdicts = Verdicts(PLAIN)
    both = report(target("//:a"), target("//:b"))
    assert verdicts.lines(both, 2.0) == ["//:a ok (2.0 s)", "//:b ok (2.0 s)", "2 targets ok (2.0 s)"]
    assert verdicts.lines(both, 2.0) == ["2 targets ok (2.0 s)"]
    bad = report(target("//:a"), target("//:b", ok=False, problem="Shell failed"))
    for _ in range(2):
        assert verdicts.lines(bad, 2.0) == [
            "//:b FAILED: Shell failed (2.0 s)",
            "1 of 2 targets failed (2.0 s)",
        ]
    ran = report(target("//:a", cached=False), target("//:b"))
    assert verdicts.lines(ran, 2.0) == ["//:a ok (2.0 s)", "//:b ok (2.0 s)", "2 targets ok (2.0 s)"]
    verdicts.forget()
    assert len(verdicts.lines(both, 2.0)) == 3
