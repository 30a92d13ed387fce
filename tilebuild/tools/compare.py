"""Decides how a port relates to its original, for one signature and architecture.

    compare --arch sm_90

Reads `python.*` and `rust.*`: `tilebc` (empty where a front end refused), `tileir`, `cubin`,
`assembly.json`. Writes `comparison.json`, a `tilebuild.verdict.Comparison`. The relation of the programs is
decided also where the machine code is the same, and marked if it is worse. Where the assembler depends on its
address layout, unequal cubins are no proof that it can tell the two apart: each side is then assembled many
times, and a machine code found on both sides settles it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from tilebuild import verdict
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError
from tilebuild.tileir import assemble as assembler
from tilebuild.tileir import compare as relations
from tilebuild.tileir.cubin import MachineCode, NotACubin, difference, host_program, machine_code
from tilebuild.tileir.parse import parse
from tilebuild.tools import assemble, protocol
from tilebuild.verdict import Comparison, Difference


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="compare")
    parser.add_argument("--arch", required=True)
    architecture = parser.parse_args(argv).arch
    comparison = compare(_Side.read("python"), _Side.read("rust"), architecture)
    Path("comparison.json").write_text(json.dumps(comparison.to_json(), indent=1, sort_keys=True) + "\n")
    return 0


@dataclass(frozen=True)
class _Side:
    name: str
    byte_code: bytes
    text: str
    cubin: bytes
    assembly: Mapping[str, Any]

    @staticmethod
    def read(name: str) -> _Side:
        def content(suffix: str) -> bytes:
            return Path(f"{name}.{suffix}").read_bytes()

        return _Side(
            name,
            content("tilebc"),
            content("tileir").decode(),
            content("cubin"),
            json.loads(content("assembly.json")),
        )

    @property
    def title(self) -> str:
        return self.name.capitalize()

    @property
    def sizes(self) -> dict[str, int]:
        return {key: value for key, value in self.assembly.items() if type(value) is int}


def compare(python: _Side, rust: _Side, architecture: str) -> Comparison:
    for side in (python, rust):
        if not side.byte_code:
            return _failed(f"{side.title}'s front end refused the kernel")
    relation = relations.compare(
        parse(python.text, "python.tileir"), parse(rust.text, "rust.tileir"), architecture
    )
    for side in (python, rust):
        if not side.assembly["ok"]:
            return _failed(f"tileiras refused the {side.title} side: {side.assembly['message']}")
    layout = _interface(relation, python, rust)
    # The host program copies the parameters: another layout makes another program, and is its own verdict.
    machine = _compare_machine_code(python, rust, architecture, with_host=layout == "same")
    evidence = _evidence(relation, machine.same)
    return Comparison(
        interface=layout,
        evidence=evidence,
        runs=machine.runs,
        texts=machine.texts,
        common=machine.common,
        flagged=machine.same and not relation.same_normal_form,
        first_difference=_first_difference(relation, machine),
        sizes={side.name: side.sizes for side in (python, rust)},
    )


def _failed(fact: str) -> Comparison:
    """One side has no machine code: there is nothing to compare."""
    return Comparison("different", (verdict.DIFFERENT,), first_difference=Difference("assembly", fact))


def _evidence(relation: relations.Relation, same_machine_code: bool) -> tuple[str, ...]:
    holds = {
        verdict.SAME_MACHINE_CODE: same_machine_code,
        verdict.SAME_IR: relation.same_ir,
        verdict.SAME_NORMAL_FORM: relation.same_normal_form,
        verdict.STRONGER_ORDER: relation.stronger_order,
        verdict.DIFFERENT_HINTS: relation.different_hints,
    }
    return tuple(name for name, true in holds.items() if true) or (verdict.DIFFERENT,)


def _interface(relation: relations.Relation, python: _Side, rust: _Side) -> str:
    """The parameter types decide, unless the device lays equal types out differently."""
    one, other = (side.assembly["parameter_bytes"] for side in (python, rust))
    return "different" if relation.interface == "same" and one != other else relation.interface


def _first_difference(relation: relations.Relation, machine: _Machine) -> Difference | None:
    """Of the machine code where only that differs; else of the programs. None if all that matters is the
    same."""
    place = _at(relation.difference)
    if not relation.same_normal_form:
        return place
    if machine.same:
        return None
    if place is None:
        return Difference("text", machine.difference)
    fact = f"{machine.difference}; first written differently: {place.fact}"
    return replace(place, kind="text", fact=fact)


def _at(place: relations.Difference | None) -> Difference | None:
    return Difference(place.kind, place.fact, place.python_op, place.rust_op) if place else None


# Machine code


@dataclass(frozen=True)
class _Machine:
    same: bool
    difference: str = ""
    runs: int = 1
    texts: tuple[int, int, int] | None = None
    common: str = ""


def _compare_machine_code(python: _Side, rust: _Side, architecture: str, *, with_host: bool) -> _Machine:
    canonical = [_machine_code(side.cubin, side.title, with_host) for side in (python, rust)]
    fact = difference(*canonical)
    if not fact:
        return _Machine(same=True)
    sizes = [side.assembly["text_bytes"] for side in (python, rust)]
    # A layout changes the choice among equals, never how much code there is: other sizes need no more runs.
    if architecture not in assembler.LAYOUT_DEPENDENT or sizes[0] != sizes[1]:
        return _Machine(same=False, difference=fact)
    left, right = (_many(side, architecture, with_host) for side in (python, rust))
    both = sorted(left & right)
    return _Machine(
        same=bool(both),
        difference=fact,
        runs=assembler.RUNS,
        texts=(len(left - right), len(both), len(right - left)),
        common=both[0] if both else "",
    )


def _many(side: _Side, architecture: str, with_host: bool) -> set[str]:
    """The digests of all machine codes that one side was assembled to."""
    tileiras = protocol.tool_path("tileiras")
    found = {_digest(_machine_code(side.cubin, side.title, with_host))}
    for _ in range(assembler.RUNS):
        outcome = assemble.run(side.byte_code, tileiras, architecture, fixed_layout=False)
        if isinstance(outcome, bytes):
            found.add(_digest(_machine_code(outcome, side.title, with_host)))
    return found


def _machine_code(content: bytes, title: str, with_host: bool) -> MachineCode:
    try:
        return {**machine_code(content), **(host_program(content) if with_host else {})}
    except NotACubin as error:
        raise DiagnosticError(
            Diagnostic(f"the {title} side's cubin cannot be read: {error}", Blame.TOOLCHAIN)
        ) from error


def _digest(code: MachineCode) -> str:
    digest = sha256()
    for name, content in sorted(code.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
