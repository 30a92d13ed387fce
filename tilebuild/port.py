"""Which spellings of a kernel were tried, what came of them and which one is the port. Knows no compiler.

A *rung* is one spelling that the translator tries. `RungVerdict` is what the judge says of one rung, `Choice`
what is published. Neither holds a line number unless something is wrong: an edit of a comment changes
neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilebuild.diagnostics import Diagnostic

#: Best first: what style a port may have.
STYLES = ("safe", "typed", "raw")


@dataclass(frozen=True)
class InstanceVerdict:
    """What is known of one signature on one architecture: the head of its comparison."""

    headline: str
    interface: str
    flagged: bool = False
    difference: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "headline": self.headline,
            "interface": self.interface,
            "flagged": self.flagged,
            "difference": None if self.difference is None else dict(self.difference),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> InstanceVerdict:
        return InstanceVerdict(data["headline"], data["interface"], data["flagged"], data["difference"])


@dataclass(frozen=True)
class RungVerdict:
    """One rung, judged.

    `evidence` maps `signature/architecture` to its verdict; `python_fails` maps it to the front end's words
    where the original does not compile. `reason` says in one line why the rung is not good enough, or
    nothing. `check` is what cargo has against the Rust, None when it has nothing.
    """

    rung: str
    style: str
    unsafe_lines: int
    evidence: Mapping[str, InstanceVerdict]
    python_fails: Mapping[str, Sequence[Diagnostic]]
    reason: str
    refused: Sequence[Diagnostic] = ()
    notes: Sequence[str] = ()
    check: Sequence[Diagnostic] | None = None

    @property
    def settled(self) -> bool:
        return not self.reason

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "rung": self.rung,
            "style": self.style,
            "unsafe_lines": self.unsafe_lines,
            "evidence": {key: verdict.to_json() for key, verdict in self.evidence.items()},
            "python_fails": {key: [d.to_json() for d in words] for key, words in self.python_fails.items()},
            "reason": self.reason,
            "refused": [d.to_json() for d in self.refused],
            "check": None if self.check is None else [d.to_json() for d in self.check],
            "notes": list(self.notes),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> RungVerdict:
        return RungVerdict(
            rung=data["rung"],
            style=data["style"],
            unsafe_lines=data["unsafe_lines"],
            evidence={key: InstanceVerdict.from_json(verdict) for key, verdict in data["evidence"].items()},
            python_fails={
                key: tuple(Diagnostic.from_json(d) for d in words)
                for key, words in data["python_fails"].items()
            },
            reason=data["reason"],
            refused=tuple(Diagnostic.from_json(d) for d in data["refused"]),
            check=None if data["check"] is None else tuple(Diagnostic.from_json(d) for d in data["check"]),
            notes=tuple(data["notes"]),
        )


@dataclass(frozen=True)
class FailedRung:
    rung: str
    reason: str


@dataclass(frozen=True)
class Choice:
    """The port of a kernel: the chosen rung, and why the better ones were not good enough.

    `chosen` is None when no rung can express the kernel; the last rung's refusal then says why.
    """

    kernel: str
    chosen: RungVerdict | None
    failed: tuple[FailedRung, ...]
    refused: tuple[Diagnostic, ...] = ()
    python_fails: Mapping[str, Sequence[Diagnostic]] | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "kernel": self.kernel,
            "chosen": None if self.chosen is None else self.chosen.to_json(),
            "failed": [{"rung": f.rung, "reason": f.reason} for f in self.failed],
            "refused": [d.to_json() for d in self.refused],
            "python_fails": {
                key: [d.to_json() for d in words] for key, words in (self.python_fails or {}).items()
            },
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Choice:
        return Choice(
            kernel=data["kernel"],
            chosen=None if data["chosen"] is None else RungVerdict.from_json(data["chosen"]),
            failed=tuple(FailedRung(f["rung"], f["reason"]) for f in data["failed"]),
            refused=tuple(Diagnostic.from_json(d) for d in data["refused"]),
            python_fails={
                key: tuple(Diagnostic.from_json(d) for d in words)
                for key, words in data["python_fails"].items()
            },
        )
