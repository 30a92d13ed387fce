"""What a comparison of two kernels says: the words and the JSON form. Knows neither how it is decided nor a
file.

The JSON schema is `tilebuild/schema/comparison.json`. Places are indices of operations, in program order
with an operation before the contents of its regions: an edit of a comment in the source changes no verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

SCHEMA_VERSION = 1

SAME_MACHINE_CODE = "same-machine-code"
SAME_IR = "same-ir"
SAME_NORMAL_FORM = "same-normal-form"
STRONGER_ORDER = "stronger-order"
DIFFERENT_HINTS = "different-hints"
TESTED_ONLY = "tested-only"
DIFFERENT = "different"

#: Relations between the two sides, best first; the headline of a comparison is the first that holds.
EVIDENCE = (
    SAME_MACHINE_CODE,
    SAME_IR,
    SAME_NORMAL_FORM,
    STRONGER_ORDER,
    DIFFERENT_HINTS,
    TESTED_ONLY,
    DIFFERENT,
)

#: Evidence that leaves no question open: the device runs the same instructions.
IDENTICAL = frozenset({SAME_MACHINE_CODE})

#: How the parameters of the two entries relate, best first.
INTERFACES = ("same", "trailing-unused", "permuted", "different")

#: Interfaces that one launcher serves: unused parameters at the end change no offset.
INTERFACES_ALIKE = frozenset({"same", "trailing-unused"})


class Gate(Enum):
    """The state of one gate of a target. Pending and not applicable are never shown as passed."""

    PASSED = "passed"
    FAILED = "failed"
    PENDING = "pending"
    NOT_APPLICABLE = "not-applicable"
    PYTHON_FAILS = "python-fails"


@dataclass(frozen=True)
class Difference:
    """The first difference. `kind` is `ir`, `text` (machine code), `interface`, `hints` or `assembly`; an
    index is -1 where that side has no operation to point at."""

    kind: str
    fact: str
    python_op: int = -1
    rust_op: int = -1

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "python_op": self.python_op, "rust_op": self.rust_op, "fact": self.fact}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Difference:
        return Difference(data["kind"], data["fact"], data["python_op"], data["rust_op"])


@dataclass(frozen=True)
class Comparison:
    """All relations that hold between a kernel and its port, for one signature and architecture.

    `runs` is 1, or the number of times each side was assembled where the assembler is not deterministic;
    `texts` counts the distinct machine codes seen then: in Python only, on both sides, in Rust only.
    `common` is the digest of a machine code found on both sides, when it is not that of the canonical
    cubins. `flagged` marks equal machine code over unequal normal forms."""

    interface: str
    evidence: tuple[str, ...]
    runs: int = 1
    texts: tuple[int, int, int] | None = None
    common: str = ""
    flagged: bool = False
    first_difference: Difference | None = None
    sizes: Mapping[str, Mapping[str, int]] | None = None
    #: What a reader should know besides, one sentence each.
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        return self.evidence[0]

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA_VERSION,
            "interface": self.interface,
            "evidence": list(self.evidence),
            "headline": self.headline,
            "runs": self.runs,
            "texts": None if self.texts is None else list(self.texts),
            "common": self.common,
            "flagged": self.flagged,
            "first_difference": None if self.first_difference is None else self.first_difference.to_json(),
            "sizes": {side: dict(sizes) for side, sizes in (self.sizes or {}).items()},
            "notes": list(self.notes),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Comparison:
        if data["schema"] != SCHEMA_VERSION:
            raise ValueError(f"comparison of schema {data['schema']}, this version reads {SCHEMA_VERSION}")
        texts, difference = data["texts"], data["first_difference"]
        return Comparison(
            interface=data["interface"],
            evidence=tuple(data["evidence"]),
            runs=data["runs"],
            texts=None if texts is None else (texts[0], texts[1], texts[2]),
            common=data["common"],
            flagged=data["flagged"],
            first_difference=None if difference is None else Difference.from_json(difference),
            sizes=data["sizes"],
            notes=tuple(data["notes"]),
        )


def evidence_rank(evidence: str) -> int:
    """Smaller is better. Raises `ValueError` for a word that is no evidence."""
    return EVIDENCE.index(evidence)
