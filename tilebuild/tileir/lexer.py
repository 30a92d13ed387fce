"""The words of the disassembler's text and a cursor over them. Knows words and lines, but no operation."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError

_WORD = re.compile(
    r"""
      "(?:[^"\\]|\\.)*"              # string
    | %[A-Za-z0-9_$.-]+(?:\#\d+)?    # value; results of one operation are %0#0, %0#1
    | \#[A-Za-z0-9_.]+               # alias
    | @[A-Za-z0-9_$.]+               # symbol
    | @"(?:[^"\\]|\\.)*"             # symbol with other letters
    | ->
    | -?\d+(?:\.\d+(?:[eE][+-]?\d+)?)?(?![\w.?])   # number
    | [A-Za-z0-9_?.]+                # word; also a shape: ?x8xf32
    | \S
    """,
    re.VERBOSE,
)
_PLAIN_SYMBOL = re.compile(r"[A-Za-z0-9_$.]+")
_STRING_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)")

T = TypeVar("T")


class Cursor:
    """A position in a list of words; every failure names the line."""

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self._words: list[str] = _WORD.findall(text)
        self._at = 0

    def peek(self, ahead: int = 0) -> str:
        """The next word, or the empty string at the end."""
        index = self._at + ahead
        return self._words[index] if index < len(self._words) else ""

    def take(self) -> str:
        word = self.peek()
        self._at += 1
        return word

    def accept(self, word: str) -> bool:
        if self.peek() != word:
            return False
        self._at += 1
        return True

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise self.error(f"expected {word!r}, found {self.peek()!r}")

    def integer(self) -> int:
        word = self.take()
        try:
            return int(word)
        except ValueError:
            self._at -= 1
            raise self.error(f"expected a number, found {word!r}") from None

    def string(self) -> str:
        word = self.take()
        if not word.startswith('"'):
            self._at -= 1
            raise self.error(f"expected a string, found {word!r}")
        return unescape(word[1:-1])

    def symbol(self) -> str:
        """The name of an entry or a global, without its sign."""
        word = self.take().removeprefix("@")
        return unescape(word[1:-1]) if word.startswith('"') else word

    def boolean(self) -> bool:
        word = self.take()
        if word not in ("true", "false"):
            self._at -= 1
            raise self.error(f"expected true or false, found {word!r}")
        return word == "true"

    def separated(self, item: Callable[[], T], end: str) -> tuple[T, ...]:
        """Items separated by commas up to and including `end`."""
        items: list[T] = []
        while not self.accept(end):
            if items:
                self.expect(",")
            items.append(item())
        return tuple(items)

    def error(self, fact: str) -> DiagnosticError:
        place = [m.start() for m, _ in zip(_WORD.finditer(self._text), range(self._at + 1), strict=False)]
        line = self._text.count("\n", 0, place[-1]) + 1 if place else 0
        source = self._text.splitlines()[line - 1].strip() if line else ""
        return DiagnosticError(
            Diagnostic(
                f"cannot read Tile IR: {self._name}:{line}: {fact}",
                Blame.TILEBUILD,
                source=source,
                help="the text was not written by the tileirdisasm that this version knows",
            )
        )


def spelled_symbol(name: str) -> str:
    """The inverse of `Cursor.symbol`."""
    return f"@{name}" if _PLAIN_SYMBOL.fullmatch(name) else f'@"{escape(name)}"'


def unescape(text: str) -> str:
    r"""Undoes the disassembler's `\0A`, `\22` and `\\`; bytes are UTF-8."""

    def byte(match: re.Match[bytes]) -> bytes:
        code = match.group(1)
        return bytes([int(code, 16)]) if len(code) == 2 else code

    return _STRING_ESCAPE.sub(byte, text.encode()).decode("utf-8", "surrogateescape")


def escape(text: str) -> str:
    """The inverse of `unescape`."""
    return "".join(_escape_byte(byte) for byte in text.encode("utf-8", "surrogateescape"))


def _escape_byte(byte: int) -> str:
    if byte == ord("\\"):
        return "\\\\"
    return chr(byte) if 0x20 <= byte < 0x7F and byte != ord('"') else f"\\{byte:02X}"
