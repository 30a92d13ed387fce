"""All programs of one kernel -> one Rust file, with the arguments for each. Knows the file's layout, but no
operation.

Programs whose functions are alike share one (`entries`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tilebuild.diagnostics import Diagnostic
from tilebuild.tileir.tree import Location
from tilebuild.translator import launcher as host
from tilebuild.translator import source as python_source
from tilebuild.translator.constants import generic_constants, rust_name, with_names
from tilebuild.translator.entries import Entry, entries
from tilebuild.translator.function import Printed, print_function
from tilebuild.translator.helpers import Helpers
from tilebuild.translator.launcher import Grid, Launcher, can_launch
from tilebuild.translator.names import function_name
from tilebuild.translator.program import Program, Source
from tilebuild.translator.refusal import Refusal
from tilebuild.translator.rungs import Rung
from tilebuild.translator.rust.printer import Text
from tilebuild.translator.rust.tree import Call, Unsafe, expressions, subexpressions, walk
from tilebuild.translator.rust.types import RustType, TensorType

#: Rust names of parameters and of constants, by their Python names -> the grid.
GridMaker: TypeAlias = Callable[[Mapping[str, str], Mapping[str, str]], Grid]


@dataclass
class Translation:
    """The Rust file of a kernel on one rung; `text` is empty where the rung refuses it."""

    rung: str
    style: str
    text: str = ""
    origins: list[Location | None] = field(default_factory=list)
    unsafe_lines: int = 0
    refused: tuple[Diagnostic, ...] = ()
    instances: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    interface: str = "same"


def translate(
    programs: Sequence[Program], source: Source, rung: Rung, grid: GridMaker | None = None
) -> Translation:
    """One file for all programs, or a refusal with its reason. `grid` makes the grid of a launcher."""
    name = function_name(source.kernel)
    try:
        programs, printed, by_name = _print(programs, source, rung, name)
    except Refusal as refusal:
        lines = source.text.splitlines()
        place = python_source.place(source)
        told = refusal.at(place).diagnostic().with_source(lines)
        return Translation(rung.name, _style(rung, False), refused=(told,))
    for one in printed:
        _document(one, source)
        one.function.unsafe = not rung.mutable
        one.function.safety = _contract(one, rung)
    file = _File(source)
    instances: dict[str, dict[str, Any]] = {}
    made = entries(name, printed, programs)
    for entry in made:
        first = printed[entry.members[0]]
        file.add(entry, first)
        if rung.tensors and not rung.mutable and not first.uses_pointers and not first.ahead_of_time:
            file.launch(_launcher(name, entry, first, [programs[m] for m in entry.members], grid))
        for member in entry.members:
            instances[programs[member].instance] = {
                "module": name,
                "entry": entry.name,
                "generics": entry.arguments(member),
                **printed[member].arguments,
            }
    text = file.text(name)
    pointers = sorted({p for one in printed for p in one.pointers})
    by_pointer = any(one.uses_pointers for one in printed)
    return Translation(
        rung.name,
        _style(rung, by_pointer),
        "\n".join(text.lines) + "\n",
        text.origins,
        file.unsafe_lines,
        instances=instances,
        notes=_notes(rung, pointers, printed, by_name, len(made)),
        interface="trailing-unused" if rung.mutable else "same",
    )


def _print(
    programs: Sequence[Program], source: Source, rung: Rung, name: str
) -> tuple[Sequence[Program], list[Printed], bool]:
    """The functions of all programs, and whether numbers may go by the names of the kernel's constants.

    They may not where a helper is declared for certain lengths, and they do not where names would part
    functions that numbers join.
    """
    named = [with_names(p, source) for p in programs]
    printed = [print_function(p, rung, name) for p in named]
    words = {rust_name(n) for p in programs for n in generic_constants(p.parameters)}
    declared = any(words & set(re.findall(r"\w+", h)) for one in printed for h in one.helpers.texts())
    count = len(entries(name, printed, named))
    if count == 1 and not declared:
        return named, printed, True
    plain = [print_function(p, rung, name) for p in programs]
    if declared or len(entries(name, plain, programs)) < count:
        return programs, plain, not declared
    return named, printed, True


def _launcher(
    module: str, entry: Entry, one: Printed, programs: Sequence[Program], grid: GridMaker | None
) -> Launcher | None:
    """The host function of an entry; None where the stock launcher of cutile would give false facts."""
    parameters = one.function.parameters
    if not can_launch(parameters, one.written):
        return None
    python = [p for p in programs[0].parameters if p.kind != "constant"]
    names = {p.name: r.local.name for p, r in zip(python, parameters, strict=True)}
    elements = {names[array]: element for array, element in entry.elements.items()}
    hints = [{k: v for k, v in p.hints.items() if k != "opt_level"} for p in programs]
    made, values = _grid(entry, programs, names, grid)
    return Launcher(
        module,
        entry.name,
        [replace(p, type=_generic(p.type, elements.get(p.local.name))) for p in parameters],
        one.written,
        values,
        made,
        hints[0] if all(h == hints[0] for h in hints) else {},
        entry.generics,
        one.own_axes,
    )


def _generic(kind: RustType, element: str | None) -> RustType:
    return replace(kind, element=element) if element and isinstance(kind, TensorType) else kind


def _grid(
    entry: Entry, programs: Sequence[Program], names: Mapping[str, str], grid: GridMaker | None
) -> tuple[Grid | None, dict[str, int]]:
    """The grid, and the constants in it that are not generic; no grid if those differ among the programs."""
    generic = {g.name for g in entry.generics}
    columns = [c for c in zip(*(p.parameters for p in programs), strict=True) if c[0].kind == "constant"]
    rust = {c[0].name: rust_name(c[0].name) for c in columns if isinstance(c[0].value, int)}
    made = grid(names, rust) if grid is not None else None
    if made is None:
        return None, {}
    values: dict[str, int] = {}
    for column in columns:
        name = rust.get(column[0].name, "")
        if name in made.constants and name not in generic:
            if len({repr(p.value) for p in column}) > 1:
                return None, {}
            assert isinstance(column[0].value, int)
            values[name] = int(column[0].value)
    return made, values


def _style(rung: Rung, by_pointer: bool) -> str:
    if rung.mutable:
        return "safe"
    return "typed" if rung.tensors and not by_pointer else "raw"


def _notes(
    rung: Rung, pointers: Sequence[str], printed: Sequence[Printed], by_name: bool, functions: int
) -> tuple[str, ...]:
    reasons = sorted({one.ahead_of_time for one in printed if one.ahead_of_time})
    notes = [f"ahead of time only: {reason}" for reason in reasons]
    if rung.tensors and pointers:
        listed = ", ".join(pointers)
        notes.append(
            f"accessed by pointer: {listed}; the other arrays through tile views (`raw` counts the pointers)"
        )
    if not by_name:
        notes.append(
            "lengths are numbers: an operation without a public function is declared for each of them"
        )
    if functions > 1:
        notes.append(f"{functions} functions: the signatures differ in more than element types and constants")
    return tuple(notes)


def _document(one: Printed, source: Source) -> None:
    python_source.annotate(one.function.body, source)
    one.function.docs = python_source.docstring(source) or (f"`{source.kernel}` of {source.path}.",)


# --- the file -------------------------------------------------------------------------------------


class _File:
    """A module under construction."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._texts: list[Text] = []
        self._needs_tileir = False
        self._helpers = Helpers()
        self._launchers: list[Launcher] = []
        self.unsafe_lines = 0

    def add(self, entry: Entry, one: Printed) -> None:
        self._texts.append(entry.text)
        self._needs_tileir |= one.needs_tileir
        self._helpers.merge(one.helpers)
        self.unsafe_lines = max(self.unsafe_lines, _unsafe_count(one))

    def launch(self, launcher: Launcher | None) -> None:
        if launcher is not None:
            self._launchers.append(launcher)

    def text(self, module: str) -> Text:
        text = Text()
        text.add(f"//! `{self._source.kernel}` of {self._source.path}, translated by tilebuild.")
        text.add("")
        if self._launchers:
            for line in [*host.uses(self._launchers), ""]:
                text.add(line)
        text.add("#[cutile::module]")
        text.add(f"pub mod {module} {{")
        text.add("    use cutile::core::*;")
        if self._needs_tileir:
            text.add("    use cutile::tileir::*;")
        helpers = self._helpers.texts()
        for helper in [h for h in helpers if "cuda_tile::op" not in h]:
            _paragraph(text, helper)
        for entry in self._texts:
            text.add("")
            text.extend(entry)
        for helper in [h for h in helpers if "cuda_tile::op" in h]:
            _paragraph(text, helper)
        text.add("}")
        for launcher in self._launchers:
            text.add("")
            for line in host.text(launcher):
                text.add(line)
        for helper in host.helpers(self._launchers):
            _paragraph(text, helper.strip("\n"), "")
        return text


def _paragraph(text: Text, helper: str, indent: str = "    ") -> None:
    text.add("")
    for line in helper.splitlines():
        text.add(f"{indent}{line}".rstrip())


def _contract(one: Printed, rung: Rung) -> tuple[str, ...]:
    """What the caller of an unsafe entry must see to."""
    lines = []
    if rung.tensors:
        lines.append("Nothing else accesses the arrays that the kernel writes until the launch is complete,")
        lines.append("and no two blocks of the grid access the same tile of such an array.")
    else:
        lines.append(
            "The pointers, lengths and strides describe live arrays, and what is assumed of them holds."
        )
    if one.pointers:
        listed = ", ".join(f"`{p}`" for p in one.pointers)
        lines.append(f"Indices into {listed} that no mask excludes lie within the array.")
    return tuple(lines)


def _unsafe_count(one: Printed) -> int:
    """Unsafe expressions of a function; those of a helper count at each of its uses."""
    inside: Mapping[str, int] = {name: text.count("unsafe {") for name, text in one.helpers.items()}
    count = 0
    for statement in walk(one.function.body):
        for expression in expressions(statement):
            for part in subexpressions(expression):
                if isinstance(part, Unsafe):
                    count += 1
                elif isinstance(part, Call):
                    count += inside.get(part.function.partition("::")[0], 0)
    return count
