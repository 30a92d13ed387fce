"""The location table at the end of a disassembly with `-g`. Knows no operation.

#loc2 = loc("/w/k.py":4:15)
#loc3 = loc(callsite(#loc2 at #loc9))
#loc19 = #cuda_tile.di_loc<#loc2 in #di_subprogram>
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tilebuild.tileir.lexer import unescape
from tilebuild.tileir.tree import Location

_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
_CALL = re.compile(r"callsite\((.+) at (.+)\)")
_SCOPED = re.compile(r"#cuda_tile\.di_loc<(.+) in #\w+>")
_LINE = re.compile(r"^(#\w+) = (.+)$", re.MULTILINE)


class LocationTable:
    """Resolves location expressions, `#loc3` or written out, by the aliases of one disassembly."""

    def __init__(self, text: str) -> None:
        self._aliases: Mapping[str, str] = dict(_LINE.findall(text))
        self._known: dict[str, Location | None] = {}

    def resolve(self, expression: str) -> Location | None:
        """None where the disassembly says `unknown`."""
        if expression not in self._known:
            self._known[expression] = self._resolve(expression.strip())
        return self._known[expression]

    def _resolve(self, expression: str) -> Location | None:
        if expression in self._aliases:
            return self.resolve(self._aliases[expression])
        if scoped := _SCOPED.fullmatch(expression):
            return self.resolve(scoped.group(1))
        if expression.startswith("loc(") and expression.endswith(")"):
            return self.resolve(expression[4:-1])
        if call := _CALL.fullmatch(expression):
            return self._call(*call.groups())
        if place := _FILE.fullmatch(expression):
            path, line, column = place.groups()
            return Location(unescape(path), int(line), int(column))
        return None

    def _call(self, callee: str, caller: str) -> Location | None:
        inner, outer = self.resolve(callee), self.resolve(caller)
        if inner is None or outer is None:
            return inner or outer
        return Location(inner.path, inner.line, inner.column, (*inner.callers, _bare(outer), *outer.callers))


def _bare(location: Location) -> Location:
    return Location(location.path, location.line, location.column)
