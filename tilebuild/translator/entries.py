"""Printed functions of one kernel -> the entries of its file: equal ones shared, alike ones folded, each
with a name.

Knows neither the file's layout nor Tile IR.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
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
    whole = _entry(name, alike, texts, programs)
    if whole is not None:
        return [whole]
    single = (_entry(name, members, texts, programs) for members in by_text.values())
    return [entry for entry in single if entry is not None]


def _entry(name: str, members: list[int], texts: Sequence[Text], programs: Sequence[Program]) -> Entry | None:
    """One function for these programs, generic over what differs among them and what has a name; None if it
    cannot be."""
    folded: Folded | None = fold(name, [texts[i] for i in members], [programs[i].parameters for i in members])
    if folded is None:
        return None
    return Entry(name, members, folded.text, folded.generics, dict(folded.elements))


# --- names -----------------------------------------------------------------------------------------


def _names(name: str, found: Sequence[Entry], programs: Sequence[Program]) -> list[str]:
    """With several entries, a name ends in what tells it from the others, and in no more: element types,
    fixed lengths, constants."""
    names = [name] * len(found)
    rows = [_words([programs[m].parameters for m in entry.members]) for entry in found]
    for column in zip(*rows, strict=True):
        longer = [f"{n}_{word}" if word else n for n, word in zip(names, column, strict=True)]
        if len(set(longer)) > len(set(names)):
            names = longer
    counts = Counter(names)
    return [f"{n}_{i + 1}" if counts[n] > 1 else n for i, n in enumerate(names)]


def _words(members: Sequence[Sequence[Parameter]]) -> list[str]:
    """What may tell an entry from others, the plainest first: the words on which all its members agree;
    empty where they differ."""
    columns = list(zip(*members, strict=True))
    return [_agreed(say, column) for say in (_element, _length, _constant) for column in columns]


def _agreed(say: Callable[[Parameter], str], column: Sequence[Parameter]) -> str:
    words = {say(p) for p in column}
    return words.pop() if len(words) == 1 else ""


def _element(parameter: Parameter) -> str:
    return RUST_OF_DTYPE.get(parameter.dtype, parameter.dtype)


def _length(parameter: Parameter) -> str:
    """`length_1`, `x_1xn`: the lengths that the signature fixes."""
    fixed = ["n" if n is None else str(n) for n in parameter.lengths]
    if all(f == "n" for f in fixed):
        return ""
    return f"length_{fixed[0]}" if len(fixed) == 1 else f"{snake(parameter.name)}_{'x'.join(fixed)}"


def _constant(parameter: Parameter) -> str:
    """`tile_64`, `causal`, `not_causal`."""
    name = snake(parameter.name)
    match parameter.value:
        case True:
            return name
        case False:
            return f"not_{name}"
        case None:
            return ""
        case value:
            return f"{name}_{snake(str(value).replace('-', 'minus_').replace('.', 'p')).strip('_')}"
