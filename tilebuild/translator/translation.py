"""All programs of one kernel -> one Rust file, with the arguments for each. Knows the file's layout, but no
operation.

Programs whose functions read the same share one; the others get names that say what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tilebuild.diagnostics import Diagnostic
from tilebuild.tileir.tree import Location
from tilebuild.translator import launcher as host
from tilebuild.translator import source as python_source
from tilebuild.translator.elements import RUST_OF_DTYPE
from tilebuild.translator.function import Printed, print_function
from tilebuild.translator.helpers import Helpers
from tilebuild.translator.launcher import Grid, Launcher, can_launch
from tilebuild.translator.names import function_name, snake
from tilebuild.translator.program import Parameter, Program, Source
from tilebuild.translator.refusal import Refusal
from tilebuild.translator.rungs import Rung
from tilebuild.translator.rust.printer import Text, function
from tilebuild.translator.rust.tree import Call, Unsafe, expressions, subexpressions, walk

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
        printed = [print_function(p, rung, name) for p in programs]
    except Refusal as refusal:
        lines = source.text.splitlines()
        return Translation(rung.name, _style(rung, False), refused=(refusal.diagnostic().with_source(lines),))
    groups = _groups(printed, source, programs if grid is not None else ())
    names = _names(name, [programs[g[0]] for g in groups])
    file = _File(source, rung)
    instances: dict[str, dict[str, Any]] = {}
    for group, entry in zip(groups, names, strict=True):
        first = printed[group[0]]
        first.function.unsafe = not rung.mutable
        first.function.name = entry
        file.add(first)
        if rung.tensors and not rung.mutable and not first.uses_pointers:
            file.launch(_launcher(name, first, [programs[i] for i in group], grid))
        for index in group:
            arguments = {"module": name, "entry": entry, "generics": [], **printed[index].arguments}
            instances[programs[index].instance] = arguments
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
        notes=_notes(rung, pointers),
        interface="trailing-unused" if rung.mutable else "same",
    )


def _launcher(
    module: str, one: Printed, programs: Sequence[Program], grid: GridMaker | None
) -> Launcher | None:
    """The host function of an entry; None where the stock launcher of cutile would give false facts."""
    parameters = one.function.parameters
    if not can_launch(parameters, one.written):
        return None
    python = [p for p in programs[0].parameters if p.kind != "constant"]
    names = {p.name: r.local.name for p, r in zip(python, parameters, strict=True)}
    constants = {p.name: p for p in programs[0].parameters if p.kind == "constant"}
    rust = {n: snake(n).upper() for n, p in constants.items() if isinstance(p.value, int)}
    values = {rust[n]: int(p.value) for n, p in constants.items() if n in rust and isinstance(p.value, int)}
    hints = [dict(p.hints) for p in programs]
    return Launcher(
        module,
        one.function.name,
        parameters,
        one.written,
        values,
        grid(names, rust) if grid is not None else None,
        {k: v for k, v in hints[0].items() if k != "opt_level"} if all(h == hints[0] for h in hints) else {},
    )


def _style(rung: Rung, by_pointer: bool) -> str:
    if rung.mutable:
        return "safe"
    return "typed" if rung.tensors and not by_pointer else "raw"


def _notes(rung: Rung, pointers: Sequence[str]) -> tuple[str, ...]:
    if not rung.tensors or not pointers:
        return ()
    listed = ", ".join(pointers)
    return (f"accessed by pointer: {listed}; the other arrays through tile views",)


def _groups(printed: Sequence[Printed], source: Source, programs: Sequence[Program]) -> list[list[int]]:
    """Programs whose text is the same, in order of their first member; a launcher's grid knows the
    constants, too."""
    by_text: dict[str, list[int]] = {}
    for index, one in enumerate(printed):
        _document(one, source)
        text = "\n".join([*function(one.function).lines, *one.helpers.texts()])
        if programs:
            text += repr([p.value for p in programs[index].parameters])
        by_text.setdefault(text, []).append(index)
    return list(by_text.values())


def _document(one: Printed, source: Source) -> None:
    python_source.annotate(one.function.body, source)
    one.function.docs = python_source.docstring(source) or (f"`{source.kernel}` of {source.path}.",)


# --- names of the entries -------------------------------------------------------------------------


def _names(name: str, firsts: Sequence[Program]) -> list[str]:
    """A name for each group; with several groups it ends in what differs: element types and constants."""
    if len(firsts) == 1:
        return [name]
    columns = [[_word(p) for p in row] for row in zip(*(f.parameters for f in firsts), strict=True)]
    differing = [c for c in columns if len(set(c)) > 1]
    names: list[str] = []
    for index in range(len(firsts)):
        words: list[str] = []
        for column in differing:
            if column[index] not in words:
                words.append(column[index])
        candidate = "_".join([name, *words])
        count = sum(1 for n in names if n == candidate or n.startswith(f"{candidate}_v"))
        names.append(candidate if not count else f"{candidate}_v{count + 1}")
    return names


def _word(parameter: Parameter) -> str:
    if parameter.kind == "constant":
        return snake(str(parameter.value).replace("-", "minus_").replace(".", "p")).strip("_")
    if parameter.kind == "array":
        fixed = ["n" if n is None else str(n) for n in parameter.lengths]
        lengths = "x".join(fixed) if any(f != "n" for f in fixed) else ""
        return "_".join(filter(None, [RUST_OF_DTYPE[parameter.dtype], lengths]))
    return RUST_OF_DTYPE.get(parameter.dtype, parameter.dtype)


# --- the file -------------------------------------------------------------------------------------


class _File:
    """A module under construction."""

    def __init__(self, source: Source, rung: Rung) -> None:
        self._source = source
        self._rung = rung
        self._entries: list[Printed] = []
        self._helpers = Helpers()
        self._launchers: list[Launcher] = []
        self.unsafe_lines = 0

    def add(self, one: Printed) -> None:
        one.function.safety = _contract(one, self._rung)
        self._entries.append(one)
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
        if any(e.needs_tileir for e in self._entries):
            text.add("    use cutile::tileir::*;")
        helpers = self._helpers.texts()
        for helper in [h for h in helpers if "cuda_tile::op" not in h]:
            _paragraph(text, helper)
        for entry in self._entries:
            text.add("")
            text.extend(function(entry.function))
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
        lines.append("Nothing else accesses the arrays that the kernel writes until the launch is complete.")
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
