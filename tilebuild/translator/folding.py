"""Functions that differ only in element types and constants -> one generic function.

    Tile<f16, { [1, 1024] }>   for x: f16, TILE: 1024
    Tile<bf16, { [1, 512] }>   for x: bf16, TILE: 512      ->   Tile<Element, { [1, TILE] }>

Texts are compared word by word. A word that differs must be the element type of some array or a number that
follows from a constant of the kernel, in every text alike; else nothing is folded. Putting the values back
gives each text again, so nothing is lost. Knows words, not Rust.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from tilebuild.translator.constants import generic_constants, rust_name
from tilebuild.translator.elements import RUST_OF_DTYPE
from tilebuild.translator.names import snake
from tilebuild.translator.program import Parameter
from tilebuild.translator.rust.printer import Text

_WORD = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?|\s+|.")
_ELEMENTS = frozenset(RUST_OF_DTYPE.values()) - {"i32"}


@dataclass(frozen=True)
class Generic:
    """A generic parameter with its value in each member. `constant` tells a number from a type."""

    name: str
    constant: bool
    values: tuple[str, ...]
    derived: bool = False  # from a constant of the kernel, not one itself

    def __str__(self) -> str:
        return f"const {self.name}: i32" if self.constant else f"{self.name}: ElementType"


@dataclass(frozen=True)
class Folded:
    text: Text
    generics: tuple[Generic, ...]
    #: For each array the name of its element type, if it became generic.
    elements: Mapping[str, str]


def skeleton(text: Text) -> str:
    """The text without its element types and whole numbers: what functions that may fold have in common."""
    return "\n".join(_blank_line(_WORD.findall(line)) for line in text.lines)


def _blank_line(words: Sequence[str]) -> str:
    """The suffix of a number stays: a generic type is none."""
    return "".join(
        word if before[:1].isdigit() else _blank(word)
        for before, word in zip(("", *words), words, strict=False)
    )


def fold(name: str, texts: Sequence[Text], members: Sequence[Sequence[Parameter]]) -> Folded | None:
    """One text for all, or None. `members` are the Python parameters of each; `name` is the function's."""
    generics = _Generics(members)
    lines: list[str] = []
    for rows in zip(*(t.lines for t in texts), strict=True):
        folded = _line([_WORD.findall(row) for row in rows], generics)
        if folded is None:
            return None
        lines.append(folded)
    words = {word for line in texts[0].lines for word in _WORD.findall(line)}
    if any(not g.constant and g.name in words for g in generics.listed()):
        return None  # the name is taken
    generics.declare(words)
    listed = generics.listed()
    if listed:
        head = re.compile(rf"(fn {re.escape(name)})\(")
        lines = [head.sub(rf"\1<{', '.join(map(str, listed))}>(", line) for line in lines]
    return Folded(Text(lines, list(texts[0].origins)), listed, generics.elements())


def _blank(word: str) -> str:
    if word in _ELEMENTS:
        return "_E_"
    return "_N_" if word.isdigit() else word


def _line(rows: Sequence[Sequence[str]], generics: _Generics) -> str | None:
    """One line of all texts with its differing words replaced; None where a difference has no name."""
    words: list[str] = []
    skip = False
    for index, column in enumerate(zip(*rows, strict=True)):
        following = rows[0][index + 1] if index + 1 < len(rows[0]) else ""
        if skip:
            skip = False
            continue
        if len(set(column)) == 1:
            words.append(column[0])
            continue
        found = generics.name(column)
        if found is None or _is_path(rows[0][index + 1 :]) or (found.constant and following in _ELEMENTS):
            return None
        words.append(found.name)
        skip = found.constant and following == "i32"
    return "".join(words)


def _is_path(following: Sequence[str]) -> bool:
    """`::NAME` behind a type, other than the two constants that every element type has."""
    return list(following[:2]) == [":", ":"] and "".join(following[2:3]) not in ("ZERO", "ONE")


class _Generics:
    """The generic parameters that are needed so far, by their values."""

    def __init__(self, members: Sequence[Sequence[Parameter]]) -> None:
        self._columns = list(zip(*members, strict=True))
        self._found: dict[tuple[str, ...], Generic] = {}
        self._named: list[Generic] = []

    def name(self, values: tuple[str, ...]) -> Generic | None:
        if values not in self._found:
            made = self._number(values) if values[0].isdigit() else self._type(values)
            if made is None:
                return None
            self._found[values] = made
        return self._found[values]

    def declare(self, words: Collection[str]) -> None:
        """Constants that the texts use by their names already."""
        for column in self._columns:
            name = rust_name(column[0].name)
            if name in words and all(p.name in generic_constants([p]) for p in column):
                values = tuple(str(p.value) for p in column)
                if all(g.name != name for g in self._found.values()):
                    self._named.append(Generic(name, True, values))

    def listed(self) -> tuple[Generic, ...]:
        """Types first, then constants in the order of the Python parameters."""
        order = {rust_name(c[0].name): i for i, c in enumerate(self._columns)}
        return tuple(
            sorted(
                [*self._found.values(), *self._named],
                key=lambda g: (g.constant, order.get(g.name, len(order)), g.name),
            )
        )

    def elements(self) -> dict[str, str]:
        named = {}
        for column in self._columns:
            values = tuple(RUST_OF_DTYPE.get(p.dtype, "") for p in column)
            if column[0].kind == "array" and values in self._found:
                named[column[0].name] = self._found[values].name
        return named

    def _type(self, values: tuple[str, ...]) -> Generic | None:
        for column in self._columns:
            if column[0].kind == "array" and tuple(RUST_OF_DTYPE[p.dtype] for p in column) == values:
                # Not `E`: cutile 0.5.0 takes that for the `E` of its own functions where both meet.
                first = all(g.constant for g in self._found.values())
                owner = "" if first else "".join(w.title() for w in snake(column[0].name).split("_"))
                return Generic(f"{owner}Element", False, values)
        return None

    def _number(self, values: tuple[str, ...]) -> Generic | None:
        """The constant with these values, else one from which they follow."""
        numbers = tuple(map(int, values))
        columns = [c for c in self._columns if c[0].kind == "constant"]
        whole = {
            rust_name(c[0].name): tuple(p.value for p in c if type(p.value) is int and p.value > 0)
            for c in columns
        }
        complete = {name: found for name, found in whole.items() if len(found) == len(numbers)}
        for name, found in complete.items():
            if found == numbers:
                return Generic(name, True, values)
        for name, found in complete.items():
            if relation := _relation(found, numbers):
                return Generic(name + relation, True, values, derived=True)
        return None


def _relation(constants: tuple[int, ...], numbers: tuple[int, ...]) -> str:
    """`_TIMES_2` or `_OVER_2` if the numbers are such multiples or fractions of the constants; else empty."""
    tests: Sequence[tuple[str, Callable[[int, int], bool]]] = (
        ("TIMES", lambda c, n: n == c * factor),
        ("OVER", lambda c, n: c == n * factor),
    )
    for factor in (2, 4, 8, 16):
        for word, holds in tests:
            if all(holds(c, n) for c, n in zip(constants, numbers, strict=True)):
                return f"_{word}_{factor}"
    return ""
