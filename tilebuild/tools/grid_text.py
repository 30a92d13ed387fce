"""Grid formulas of BUILD files as Rust expressions of type i32. Knows the little language and no kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilebuild import grids
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError, did_you_mean
from tilebuild.translator.launcher import Grid

_FUNCTIONS: Mapping[str, str] = {"//": "floor_div", "%": "floor_mod", "cdiv": "ceil_div"}


def rust_grid(texts: Sequence[str], parameters: Mapping[str, str], constants: Mapping[str, str]) -> Grid:
    """`parameters` and `constants` give the Rust name of each Python name."""
    writer = _Writer(parameters, constants)
    dimensions = tuple(_bare(writer.write(grids.parse(text))) for text in texts)
    return Grid(dimensions, tuple(writer.constants), frozenset(writer.helpers))


class _Writer:
    def __init__(self, parameters: Mapping[str, str], constants: Mapping[str, str]) -> None:
        self._parameters = parameters
        self._constants = constants
        self.constants: dict[str, None] = {}
        self.helpers: set[str] = set()

    def write(self, e: grids.Expression) -> str:
        match e:
            case grids.Number():
                return str(e.value)
            case grids.Name():
                if e.name in self._constants:
                    self.constants[self._constants[e.name]] = None
                    return self._constants[e.name]
                return self._parameter(e.name)
            case grids.Extent():
                return f"{self._parameter(e.array)}.{e.property}()[{e.axis}]"
            case grids.Binary(operator="+" | "-" | "*"):
                return f"({self.write(e.left)} {e.operator} {self.write(e.right)})"
            case grids.Binary():
                return self._call(_FUNCTIONS[e.operator], (e.left, e.right))
            case grids.Call(function="cdiv"):
                return self._call("ceil_div", e.arguments)
            case grids.Call():
                first, *rest = (self.write(a) for a in e.arguments)
                return _receiver(first) + "".join(f".{e.function}({r})" for r in rest)

    def _parameter(self, name: str) -> str:
        if name not in self._parameters:
            known = [*self._parameters, *self._constants]
            fact = f"a grid formula names {name!r}, which is no parameter of the kernel"
            raise DiagnosticError(Diagnostic(fact, Blame.BUILD_FILE, help=did_you_mean(name, known)))
        return self._parameters[name]

    def _call(self, name: str, arguments: Sequence[grids.Expression]) -> str:
        self.helpers.add(name)
        return f"{name}({', '.join(_bare(self.write(a)) for a in arguments)})"


def _bare(text: str) -> str:
    """Without the outer parentheses that an argument does not need."""
    depth = 0
    for index, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and index < len(text) - 1:
            return text
    return text[1:-1] if text.startswith("(") else text


def _receiver(text: str) -> str:
    """The text as what a method is called on."""
    return text if text.startswith("(") or not set(text) & set("+-* ") else f"({text})"
