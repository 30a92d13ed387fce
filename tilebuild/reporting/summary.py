"""The text at the end of a `build` or `test`: what each target is worth, where the time went. Knows no
terminal but colour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tilebuild.events import Outcome, Status
from tilebuild.report import Report, TargetResult
from tilebuild.reporting import device
from tilebuild.reporting.text import Style, columns, counted, seconds

_SHOWN_FILES = 6
_ENDS = {
    Status.RAN: "ran",
    Status.HIT: "cached",
    Status.SKIPPED: "not needed",
    Status.FAILED: "failed",
    Status.BLOCKED: "blocked",
    Status.CANCELLED: "not started",
}
_IDLE = frozenset({Status.HIT, Status.SKIPPED})


def summary(report: Report, style: Style) -> str:
    """Everything after the diagnostics; ends with a newline."""
    lines = [line for target in report.shown for line in _target(target, report, style)]
    if report.dry_run:
        lines += _plan(report.outcomes, style)
    elif any(outcome.status not in _IDLE for outcome in report.outcomes):
        lines += _stages(report.outcomes, style)
    lines += _of_devices(report, style)
    lines += [style.bad(f"FAILED {t.label}: {t.problem}") for t in report.shown if not t.ok]
    if report.problems:
        lines.append(
            style.bad(f"FAILED: {counted(len(report.problems), 'problem')} kept targets from being built")
        )
    lines.append(_footer(report, style))
    return "\n".join(lines) + "\n"


def _of_devices(report: Report, style: Style) -> Iterator[str]:
    """What was measured and what is still to be run on a GPU."""
    if report.verb == "bench":
        yield from device.figures(report.shown, style)
    yield from device.pending(report.shown, style, cases=report.verb != "build")


def _target(target: TargetResult, report: Report, style: Style) -> Iterator[str]:
    if target.test or report.verb != "build":
        yield from _test(target, style)
        return
    if target.verdict is not None and "kernels" in target.verdict:
        word = style.good("ok") if target.ok else style.bad("FAILED")
        if target.ok and target.pending:
            word = f"ok, but {style.strong('pending')} on a GPU"
        yield f"{style.strong(target.label)}  {word}"
        yield from (f"  {line}" for line in _kernels(target.verdict["kernels"], style))
        yield from (f"  {line}" for line in _tests(target.verdict, style))
        return
    if not target.ok:
        yield f"{target.label}  {style.bad('FAILED')}"
        yield f"  {target.problem}"
        return
    if not report.dry_run:
        yield f"{target.label}  {style.good('ok')}"
    shown = () if report.dry_run else target.files[:_SHOWN_FILES]
    yield from (f"  {report.output}/{path}" for path in shown)
    if shown and len(target.files) > len(shown):
        yield f"  and {counted(len(target.files) - len(shown), 'more file')}"


def _test(target: TargetResult, style: Style) -> Iterator[str]:
    word = style.good("PASSED") if target.ok else style.bad("FAILED")
    if target.ok and target.pending:
        word = style.strong("PENDING")
    elif target.ok and target.verdict is not None and not _has_run(target.verdict):
        word = "NOT APPLICABLE"
    cached = "(cached) " if target.cached else ""
    first, *rest = [*_tests(target.verdict or {}, style), ""]
    yield f"{target.label}  {cached}{word}  {first}".rstrip()
    yield from (f"  {line}" for line in rest if line)


def _has_run(verdict: Mapping[str, Any]) -> bool:
    """Whether a gate besides the evidence was decided; what was not tested has not passed."""
    gates = verdict.get("gates", ())
    test = verdict.get("cpu_test") or {}
    tested = test.get("passed") or test.get("failed")
    return bool(tested) or any(g["gate"] != "evidence" and g["state"] == "passed" for g in gates)


def _kernels(kernels: Sequence[Mapping[str, Any]], style: Style) -> Iterator[str]:
    """One line per kernel and architecture group; below it what kept better rungs from being chosen."""
    architectures = sorted(
        {a for kernel in kernels for row in kernel["evidence"].values() for a in row},
        key=lambda name: (len(name), name),
    )
    rows = [["kernel", "style", "rung", "unsafe", "interface", *architectures]]
    for kernel in kernels:
        words = [_evidence(kernel["evidence"], architecture) for architecture in architectures]
        rows.append(
            [
                kernel["kernel"],
                kernel.get("style") or "refused",
                kernel.get("rung") or "-",
                str(kernel.get("unsafe_lines", 0)),
                kernel.get("interface") or "-",
                *words,
            ]
        )
    heading, *lines = columns(rows, right=frozenset({3}))
    yield style.faint(heading)
    for kernel, line in zip(kernels, lines, strict=True):
        yield line
        if kernel.get("reason"):
            yield f"  rung {kernel['rung']} was chosen although: {kernel['reason']}"
        for failed in kernel.get("failed_rungs", ()):
            yield style.faint(f"  rung {failed['rung']} failed: {failed['reason']}")
        if flagged := kernel.get("flagged"):
            yield f"  equal machine code over different Tile IR: {counted(len(flagged), 'instance')}"
        for note in kernel.get("notes", ()):
            yield style.faint(f"  {note}")


def _evidence(evidence: Mapping[str, Mapping[str, str]], architecture: str) -> str:
    found = Counter(row[architecture] for row in evidence.values() if architecture in row)
    if len(found) == 1:
        (word, count), *_ = found.items()
        return f"{word} ×{count}" if count > 1 else word
    return ", ".join(f"{word} ×{count}" for word, count in found.most_common()) or "-"


def _tests(verdict: Mapping[str, Any], style: Style) -> Iterator[str]:
    test = verdict.get("cpu_test") or {}
    counts = [(test.get("passed", 0), "passed"), (test.get("failed", 0), "failed")]
    counts.append((test.get("not_applicable", 0), "not applicable"))
    said = [f"{count} {word}" for count, word in counts if count]
    if said:
        text = f"cpu test: {', '.join(said)}"
        yield style.bad(text) if test.get("failed") else text
    for case in test.get("cases", ()):
        if case["state"] == "failed":
            first, *more = case["reason"].split("; ")
            yield style.bad(f"  {case['name']}: {first}")
            yield from (style.bad(f"    {line}") for line in more)
    yield from (style.faint(f"  {line}") for line in _untested(test.get("cases", ())))
    yield from device.tested(verdict)


def _untested(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Why cases could not be tested on the CPU: each reason once, with the first case that has it."""
    named: dict[str, list[str]] = {}
    for case in cases:
        if case["state"] == "not-applicable":
            named.setdefault(case["reason"], []).append(case["name"])
    for reason, names in named.items():
        more = f" and {counted(len(names) - 1, 'more case')}" if len(names) > 1 else ""
        yield f"{names[0]}{more}: {reason}"


def _stages(outcomes: Sequence[Outcome], style: Style) -> Iterator[str]:
    """Where the time went: per mnemonic, in the order in which they first ended."""
    rows = [["stage", "ran", "cached", "skipped", "failed", "time"]]
    for mnemonic in dict.fromkeys(outcome.action.mnemonic for outcome in outcomes):
        ended = [o for o in outcomes if o.action.mnemonic == mnemonic]
        counts = Counter(o.status for o in ended)
        spent = sum(o.seconds for o in ended if o.status in (Status.RAN, Status.FAILED))
        numbers = [counts[s] for s in (Status.RAN, Status.HIT, Status.SKIPPED, Status.FAILED)]
        rows.append([mnemonic, *(str(n) if n else "·" for n in numbers), seconds(spent) if spent else "·"])
    heading, *lines = columns(rows, right=frozenset({1, 2, 3, 4, 5}))
    yield style.faint(heading)
    yield from lines


def _plan(outcomes: Sequence[Outcome], style: Style) -> Iterator[str]:
    for outcome in outcomes:
        if outcome.status is Status.WOULD_RUN:
            yield f"would run {outcome.action.name}"
            yield from (style.faint(f"  {line}") for line in outcome.why)
    waiting = sum(outcome.status is Status.MAY_RUN for outcome in outcomes)
    if waiting:
        yield f"may run after those: {counted(waiting, 'action')}"


def _footer(report: Report, style: Style) -> str:
    counts = report.counts()
    failed = sum(not target.ok for target in report.shown)
    targets = counted(len(report.shown), "target" if report.verb == "build" else "test")
    if report.interrupted:
        return style.bad("interrupted: what was finished is kept")
    if report.dry_run:
        return f"dry run: {targets}, {counted(counts[Status.WOULD_RUN], 'action')} would run"
    state = style.bad(f"{failed} of {targets} failed") if failed else _good(report, targets, style)
    parts = [f"{counts[status]} {word}" for status, word in _ENDS.items() if counts[status]]
    actions = f"; actions: {', '.join(parts)}" if parts else ""
    sandbox = f"; sandbox: {report.sandbox}" if report.sandbox and counts[Status.RAN] else ""
    return f"{report.verb}: {state}{actions}{sandbox}; {seconds(report.seconds)}"


def up_to_date(report: Report, style: Style) -> str:
    """What the same command says when nothing has changed."""
    lines = [line for target in report.shown for line in _target(target, report, style)]
    lines += _of_devices(report, style)
    targets = counted(len(report.shown), "target" if report.verb == "build" else "test")
    return "\n".join([*lines, f"{report.verb}: {_good(report, targets, style)}; nothing to do"]) + "\n"


def _good(report: Report, targets: str, style: Style) -> str:
    """How many targets are well, where none failed; what waits for a verdict is not counted among them."""
    pending = sum(bool(target.pending) for target in report.shown)
    if not pending:
        return style.good(f"{targets} ok")
    return f"{len(report.shown) - pending} of {targets} ok, {style.strong(f'{pending} pending')}"
