"""Printed functions of one kernel -> the entries of its file: equal ones shared, alike ones folded, each
with a name.

Knows neither the file's layout nor Tile IR.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tilebuild.translator.elements import RUST_OF_DTYPE
from tilebuild.translator.folding import Folded, Generic, fold, skeleton
from tilebuild.translator.function import Printed
from tilebuild.translator.names import snake
from tilebuild.translator.program import Parameter, Program
from tilebuild.translator.rust.printer import Text, function


@dataclass
class Entry:
    """One Rust function and the programs that it stands for, by their numbers."""

    name: str
    members: list[int]
    text: Text
    generics: tuple[Generic, ...] = ()
    elements: dict[str, str] = field(default_factory=dict)  # array -> its generic element type

    def arguments(self, member: int) -> list[str]:
        """The generic arguments of a program."""
        return [g.values[self.members.index(member)] for g in self.generics]


def entries(name: str, printed: Sequence[Printed], programs: Sequence[Program]) -> list[Entry]:
    """`name` is the name of the Python kernel in Rust's spelling, which all functions carry so far."""
    texts = [function(p.function) for p in printed]
    found: list[Entry] = []
    for alike in _alike(texts, printed):
        found += _folded(name, alike, texts, programs)
    for entry, final in zip(found, _names(name, found, programs), strict=True):
        entry.name = final
        entry.text.lines = [re.sub(rf"\bfn {re.escape(name)}\b", f"fn {final}", x) for x in entry.text.lines]
    return found


def _alike(texts: Sequence[Text], printed: Sequence[Printed]) -> list[list[int]]:
    """Functions that may fold: equal but for element types and numbers, with the same helpers."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for index, one in enumerate(printed):
        groups.setdefault((skeleton(texts[index]), *one.helpers.texts()), []).append(index)
    return list(groups.values())


def _folded(name: str, alike: list[int], texts: Sequence[Text], programs: Sequence[Program]) -> list[Entry]:
    by_text: dict[str, list[int]] = {}
    for index in alike:
        by_text.setdefault("\n".join(texts[index].lines), []).append(index)
    if len(by_text) > 1:
        parameters = [programs[i].parameters for i in alike]
        folded: Folded | None = fold(name, [texts[i] for i in alike], parameters)
        if folded is not None:
            return [Entry(name, alike, folded.text, folded.generics, dict(folded.elements))]
    return [Entry(name, members, texts[members[0]]) for members in by_text.values()]


# --- names -----------------------------------------------------------------------------------------


def _names(name: str, found: Sequence[Entry], programs: Sequence[Program]) -> list[str]:
    """With several entries, a name ends in what tells it from the others: element types, constants,
    lengths."""
    if len(found) == 1:
        return [name]
    rows = [_words([programs[m].parameters for m in entry.members]) for entry in found]
    differing = [c for c in zip(*rows, strict=True) if len(set(c)) > 1]
    names: list[str] = []
    for index in range(len(found)):
        words = dict.fromkeys(column[index] for column in differing if column[index])
        candidate = "_".join([name, *words])
        count = sum(1 for n in names if n == candidate or n.startswith(f"{candidate}_v"))
        names.append(candidate if not count else f"{candidate}_v{count + 1}")
    return names


def _words(members: Sequence[Sequence[Parameter]]) -> list[str]:
    """For each parameter the word that all members agree on; empty if they differ."""
    columns = [{_word(p) for p in column} for column in zip(*members, strict=True)]
    return [words.pop() if len(words) == 1 else "" for words in columns]


def _word(parameter: Parameter) -> str:
    if parameter.kind == "constant":
        return snake(str(parameter.value).replace("-", "minus_").replace(".", "p")).strip("_")
    if parameter.kind == "array":
        fixed = ["n" if n is None else str(n) for n in parameter.lengths]
        lengths = "x".join(fixed) if any(f != "n" for f in fixed) else ""
        return "_".join(filter(None, [RUST_OF_DTYPE[parameter.dtype], lengths]))
    return RUST_OF_DTYPE.get(parameter.dtype, parameter.dtype)
