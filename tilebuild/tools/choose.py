"""Chooses the port of a kernel among its judged rungs. Knows nothing of what the rungs look like.

    choose --kernel NAME RUNG...

The rungs are given best first; `<rung>/rung.json` is absent where a better rung settled the matter. Writes
`choice.json`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from tilebuild.port import STYLES, Choice, FailedRung, RungVerdict
from tilebuild.verdict import evidence_rank


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="choose")
    parser.add_argument("--kernel", required=True)
    parser.add_argument("rung", nargs="+")
    arguments = parser.parse_args(argv)

    rungs = [
        RungVerdict.from_json(json.loads(path.read_text()))
        for rung in arguments.rung
        if (path := Path(rung, "rung.json")).exists()
    ]
    choice = choose(arguments.kernel, rungs)
    Path("choice.json").write_text(json.dumps(choice.to_json(), indent=1, sort_keys=True) + "\n")
    return 0


def choose(kernel: str, rungs: Sequence[RungVerdict]) -> Choice:
    """The first settled rung; without one what cargo accepts, then the best evidence, then the safest style.

    Needs at least one rung; they are in the order of the ladder.
    """
    python_fails = rungs[0].python_fails
    settled = next((r for r in rungs if r.settled), None)
    usable = [r for r in rungs if not r.refused and r.evidence]
    chosen = settled if settled is not None and settled.evidence else None
    if chosen is None and usable:
        chosen = min(usable, key=lambda r: (r.check is not None, _weakest(r), STYLES.index(r.style)))
    failed = tuple(FailedRung(r.rung, r.reason) for r in rungs if r is not chosen and r.reason)
    refused = () if chosen is not None else tuple(rungs[-1].refused)
    return Choice(kernel, chosen, failed, refused, python_fails)


def _weakest(rung: RungVerdict) -> int:
    return max(evidence_rank(v.headline) for v in rung.evidence.values())
