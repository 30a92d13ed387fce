"""The tool `translate`: the Tile IR of a kernel, for all its signatures and architectures -> one Rust file.

    translate --kernel NAME --rung RUNG --source src.py --out-dir .

Reads `<signature>/<arch>/{kernel.tileir,status.json,interface.json,names.json,hints.json}`,
`<signature>/signature.json` and `operator.json`. Writes `port.rs`, formatted by rustfmt and empty where the
rung refuses the kernel, `map.json` (Rust line, Python path, Python line) and `instances.json`. A refusal is
a result.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tilebuild import faults
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError
from tilebuild.python_text import read_python
from tilebuild.tileir.parse import parse
from tilebuild.tileir.tree import Location
from tilebuild.tools.grid_text import rust_grid
from tilebuild.tools.protocol import run, tool_path
from tilebuild.translator.program import Program, Source, parameters_of
from tilebuild.translator.rungs import rung
from tilebuild.translator.translation import Translation, translate


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="translate")
    for option in ("--kernel", "--rung", "--source"):
        parser.add_argument(option, required=True)
    parser.add_argument("--out-dir", default=".")
    arguments = parser.parse_args(argv)
    source = Source(arguments.source, read_python(arguments.source), arguments.kernel)
    programs, refused = _programs(Path())
    operator = json.loads(Path("operator.json").read_text()) if Path("operator.json").exists() else {}
    texts = operator.get("grids", {}).get(arguments.kernel)
    grid = partial(rust_grid, texts) if texts else None
    if programs:
        translation = translate(programs, source, rung(arguments.rung), grid)
    else:
        translation = Translation(arguments.rung, "raw", refused=refused)
    _write(Path(arguments.out_dir), translation)
    return 0


def _programs(folder: Path) -> tuple[list[Program], tuple[Diagnostic, ...]]:
    """The programs that the front end accepted, and why it refused the others."""
    programs: list[Program] = []
    refused: list[Diagnostic] = []
    for status_file in sorted(folder.glob("*/*/status.json")):
        status = json.loads(status_file.read_text())
        if status["ok"]:
            programs.append(_program(status_file.parent))
        else:
            refused += [Diagnostic.from_json(d) for d in status["diagnostics"]]
    return programs, tuple(dict.fromkeys(refused))


def _program(folder: Path) -> Program:
    def read(name: str) -> Any:
        return json.loads((folder / name).read_text())

    names = read("names.json")
    table = [_location(row) for row in names["location_table"]]
    interface = read("interface.json")
    signature = json.loads((folder.parent / "signature.json").read_text())
    return Program(
        instance=f"{folder.parent.name}/{folder.name}",
        entry=parse((folder / "kernel.tileir").read_text(), "kernel.tileir"),
        parameters=parameters_of(interface, signature),
        names=tuple(names["names"]),
        dtypes=tuple(names["dtypes"]),
        locations=tuple(table[i] if i >= 0 else None for i in names["locations"]),
        hints=read("hints.json"),
        target=folder.name,
    )


def _location(row: Sequence[Any]) -> Location:
    path, line, column, *callers = row
    return Location(path, line, column, tuple(Location(*caller[:3]) for caller in callers))


def _write(folder: Path, translation: Translation) -> None:
    text, lines = translation.text, []
    if text:
        text = _formatted(translation.text)
        lines = _line_map(translation, text)
    (folder / "port.rs").write_text(text, encoding="utf-8")
    (folder / "map.json").write_text(json.dumps({"lines": lines}))
    (folder / "instances.json").write_text(
        json.dumps(
            {
                "rung": translation.rung,
                "style": translation.style,
                "unsafe_lines": translation.unsafe_lines,
                "refused": [d.to_json() for d in translation.refused] or None,
                "instances": translation.instances,
                "notes": list(translation.notes),
                "interface": translation.interface,
            },
            indent=1,
            sort_keys=True,
        )
    )


def _formatted(text: str) -> str:
    """The text as rustfmt breaks it."""
    done = subprocess.run(
        [tool_path("rustfmt"), "--edition", "2024", "--config-path", "/dev/null", "--emit", "stdout"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        if fault := faults.said_in(done.stderr, "rustfmt"):
            raise fault
        raise DiagnosticError(
            Diagnostic("rustfmt cannot read the translated text", Blame.TILEBUILD, help=done.stderr + text)
        )
    return done.stdout


def _line_map(translation: Translation, formatted: str) -> list[tuple[int, str, int]]:
    """Rust lines with the Python line they stem from.

    rustfmt breaks and joins lines, adds and drops commas and braces, and changes nothing else: both texts
    are walked side by side, blanks, commas and braces aside.
    """
    new_lines = _significant(formatted)
    rows: list[tuple[int, str, int]] = []
    seen: set[int] = set()
    for (old_line, _), (new_line, _) in zip(_significant(translation.text), new_lines, strict=False):
        origin = translation.origins[old_line - 1]
        if origin is not None and new_line not in seen:
            seen.add(new_line)
            rows.append((new_line, origin.path, origin.line))
    return rows


def _significant(text: str) -> list[tuple[int, str]]:
    return [
        (number, character)
        for number, line in enumerate(text.splitlines(), 1)
        for character in line
        if not character.isspace() and character not in ",{}"
    ]


if __name__ == "__main__":
    import sys

    raise SystemExit(run(main, sys.argv[1:]))
