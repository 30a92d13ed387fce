"""The table of the TileGym kernels: what each port is worth, how safe, how long, and what it was made from.

    python -m tests.tilegym.table [OPERATOR...] [--json] [--no-build] [--write] [-j N]

Builds the operators of `corpus/BUILD` for all architectures and prints one row per kernel; what is in the
cache is not built again. `--no-build` reads what is there. `--write` commits the rows to `table.json` and
`table.md`, rows of other operators as they are. Knows no compiler and decides nothing.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from tests.tilegym import measure, wheel

ROOT = Path(__file__).resolve().parents[2]
OUTPUTS = Path("tilebuild-out", "tests", "tilegym", "corpus")
TABLE = Path(__file__).parent / "table.json"
PAGE = Path(__file__).parent / "table.md"
SCHEMA = 1
#: A cell of the corpus is one signature on one architecture.
_CELLS = sum(len(kernel.instances) for kernel in wheel.kernels())
_COLUMNS = (
    *("operator", "kernel", *wheel.ARCHITECTURES, "style", "rung", "unsafe", "Rust", "Python", "ratio"),
    *("entries", "shims", "names", "made from"),
)


@dataclass(frozen=True)
class Row:
    """One kernel. `rung` and `style` are empty where no rung expresses it.

    `evidence` holds, by architecture, how many signatures have which headline. `names` are the values whose
    Python name the Rust keeps, and those that have one. `pointers` says that Python accesses memory otherwise
    than by tiles. `digests` say what the row was made from; `rust`
    among them stands for everything that tilebuild did.
    """

    operator: str
    kernel: str
    evidence: Mapping[str, Mapping[str, int]]
    style: str
    rung: str
    interface: str
    unsafe_lines: int
    python_lines: int
    rust_lines: int
    launcher_lines: int
    entries: int
    shims: int
    names: tuple[int, int]
    pointers: bool
    numbered_names: Sequence[str]
    flagged: Sequence[str]
    failed_rungs: Sequence[Mapping[str, str]]
    refused: str
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        return self.rust_lines / self.python_lines

    def verdict(self) -> dict[str, Any]:
        """What another run of the same build must reproduce."""
        return {name: getattr(self, name) for name in ("evidence", "style", "rung", "interface", "flagged")}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Row:
        return Row(**{**data, "names": tuple(data["names"])})


def build(operators: Sequence[str], jobs: int = 2, limit_s: float | None = None) -> bool:
    """Builds operators of the corpus; false if the limit was reached before. A failed gate is a row of the
    table, no error."""
    program = str(Path(sys.executable).with_name("tilebuild"))
    labels = [f"//tests/tilegym/corpus:{name}" for name in operators]
    wanted = [word for architecture in wheel.ARCHITECTURES for word in ("--arch", architecture)]
    command = [program, "build", *labels, *wanted, "--verify=compare", "-k", "-j", str(jobs)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=sys.__stderr__)
    try:
        status = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.wait()
        return False
    if status not in (0, 1):
        raise SystemExit(status)
    return True


def read(operators: Sequence[str], root: Path = ROOT) -> list[Row]:
    """The rows of operators that have been built."""
    return [
        _row(kernel, root / OUTPUTS / kernel.operator)
        for kernel in wheel.kernels()
        if kernel.operator in operators
    ]


def _row(kernel: wheel.Kernel, folder: Path) -> Row:
    verdict = json.loads((folder / "verify/compare/verdict.json").read_text())
    found = next(k for k in verdict["kernels"] if k["kernel"] == kernel.name)
    rust = (folder / f"{kernel.name}.rs").read_text()
    choice = json.loads((folder / f"{kernel.name}.port.json").read_text())["choice"]
    size = measure.rust_size(rust)
    names, pointers = _of_python(kernel)
    return Row(
        operator=kernel.operator,
        kernel=kernel.name,
        evidence=_evidence(found["evidence"]) if rust or found["evidence"] else _refused(kernel),
        style=found["style"] or "",
        rung=found["rung"] or "",
        interface=found["interface"] or "",
        unsafe_lines=found["unsafe_lines"],
        python_lines=measure.python_lines(wheel.library(), kernel.source, kernel.name),
        rust_lines=size.device,
        launcher_lines=size.launchers,
        entries=size.entries,
        shims=size.shims,
        names=(measure.kept_names(rust, names), len(names)),
        pointers=pointers,
        numbered_names=measure.numbered_names(rust),
        flagged=found["flagged"],
        failed_rungs=found["failed_rungs"],
        refused="; ".join(d["fact"] for d in choice["refused"]),
        digests={**wheel.input_digests(kernel), "rust": wheel.digest(rust)},
    )


def _evidence(by_signature: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {architecture: Counter() for architecture in wheel.ARCHITECTURES}
    for by_architecture in by_signature.values():
        for architecture, headline in by_architecture.items():
            counts[architecture][headline] += 1
    return {architecture: dict(sorted(found.items())) for architecture, found in counts.items()}


def _refused(kernel: wheel.Kernel) -> dict[str, dict[str, int]]:
    return {architecture: {"refused": len(kernel.signatures)} for architecture in wheel.ARCHITECTURES}


def _of_python(kernel: wheel.Kernel) -> tuple[list[str], bool]:
    """The names of the values, and whether they hold pointers. An architecture and a signature hardly change
    them, so one stands for all."""
    with tempfile.TemporaryDirectory() as folder:
        wheel.python_side(kernel, kernel.instances[:1], Path(folder))
        return wheel.python_names(Path(folder)), wheel.uses_pointers(Path(folder))


# --- the committed table --------------------------------------------------------------------------


def committed() -> list[Row]:
    return [Row.from_json(data) for data in json.loads(TABLE.read_text())["rows"]] if TABLE.exists() else []


def write(rows: Iterable[Row]) -> None:
    """Replaces the rows of these kernels in the committed table."""
    merged = {(row.operator, row.kernel): row for row in committed()}
    merged |= {(row.operator, row.kernel): row for row in rows}
    order = [(kernel.operator, kernel.name) for kernel in wheel.kernels()]
    kept = [merged[key] for key in order if key in merged]
    TABLE.write_text(to_json(kept))
    PAGE.write_text(markdown(kept))


def to_json(rows: Sequence[Row]) -> str:
    document = {"schema": SCHEMA, "versions": wheel.versions(), "rows": [asdict(row) for row in rows]}
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def markdown(rows: Sequence[Row]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in wheel.versions().items())
    lines = [
        "# The TileGym kernels",
        "",
        f"Made by `python -m tests.tilegym.table --write` with {versions}.",
        "Lines are lines of code: of the kernel and all that it calls in Python, of the device module and",
        "its helpers in Rust. A row is evidence for the Rust text whose digest is among those that it was",
        "made from; a translator that writes another text has to prove it again.",
        "",
        _joined(_COLUMNS),
        _joined("---" for _ in _COLUMNS),
        *(_line(row) for row in rows),
        "",
        "## In sum",
        "",
        *(f"- {fact}" for fact in summary(rows)),
        "",
        "## Why not a better rung",
        "",
        *(_failed(row) for row in rows if row.failed_rungs or row.refused),
    ]
    return "\n".join(lines) + "\n"


def _joined(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _line(row: Row) -> str:
    kept, named = row.names
    cells = [
        row.operator,
        f"`{row.kernel}`",
        *(_cell(row.evidence[architecture]) for architecture in wheel.ARCHITECTURES),
        row.style or "–",
        row.rung or "–",
        *map(str, (row.unsafe_lines, row.rust_lines, row.python_lines)),
        f"{row.ratio:.2f}",
        *map(str, (row.entries, row.shims)),
        f"{100 * kept / named:.0f} %" if named and row.rust_lines else "–",
        f"`{wheel.digest(dict(row.digests))}`",
    ]
    return _joined(cells)


def _cell(evidence: Mapping[str, int]) -> str:
    return ", ".join(f"{headline} ×{count}" for headline, count in evidence.items()) or "–"


def _failed(row: Row) -> str:
    words = [f"{f['rung']}: {f['reason']}" for f in row.failed_rungs]
    if row.refused:
        words.append(f"refused: {row.refused}")
    return f"- `{row.kernel}` ({row.operator}): " + "; ".join(word.replace("\n", " ") for word in words)


def summary(rows: Sequence[Row]) -> list[str]:
    """The figures over all kernels that the table is read for."""
    cells = Counter(h for row in rows for e in row.evidence.values() for h, n in e.items() for _ in range(n))
    ported = [row for row in rows if row.rust_lines]
    ratios = [row.ratio for row in ported]
    kept, named = (sum(row.names[i] for row in ported) for i in (0, 1))
    careful = [row.shims for row in ported if row.style in ("safe", "typed")]
    facts = [f"{headline}: {count} of {_CELLS} cells" for headline, count in cells.most_common()]
    if missing := _CELLS - cells.total():
        facts.append(f"not built yet: {missing} of {_CELLS} cells")
    styles = Counter(row.style for row in ported)
    facts += [f"style {style}: {count} kernels" for style, count in styles.most_common()]
    by_tile = Counter(row.style for row in ported if not row.pointers)
    styles_by_tile = ", ".join(f"{count} {style}" for style, count in by_tile.most_common())
    facts.append(f"kernels that access memory by tiles alone: {by_tile.total()}, of them {styles_by_tile}")
    if ratios:
        high = percentile(ratios, 90)
        facts.append(f"Rust lines per Python line: median {median(ratios):.2f}, p90 {high:.2f}")
        facts.append(f"values that keep their Python name: {100 * kept / max(named, 1):.1f} % of {named}")
    facts.append(f"numbered identifiers: {sum(len(row.numbered_names) for row in ported)}")
    facts.append(f"most shims in a safe or typed file: {max(careful, default=0)}")
    return facts


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that so many per cent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tilegym.table", description=__doc__)
    parser.add_argument("operator", nargs="*", help="all of them, if none is named")
    parser.add_argument("--json", action="store_true", help="print JSON instead of markdown")
    parser.add_argument("--no-build", action="store_true", help="read what has been built")
    parser.add_argument("--write", action="store_true", help="commit the rows to table.json and table.md")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    arguments = parser.parse_args(argv)
    if unknown := set(arguments.operator) - set(wheel.operators()):
        parser.error(f"no operator {', '.join(sorted(unknown))}; there are {', '.join(wheel.operators())}")
    chosen = arguments.operator or wheel.operators()
    if not arguments.no_build:
        build(chosen, arguments.jobs)
    with wheel.tools_in_environment():
        rows = read(chosen)
    print(to_json(rows) if arguments.json else markdown(rows), end="")
    if arguments.write:
        write(rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
