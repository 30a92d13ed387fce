"""The host function beside a typed entry: takes outputs by `&mut`, computes the grid, discharges the
contract.

A `&Tensor` argument registers shared access, while the kernel writes through some of them. So an output is
taken by `&mut`, `partition` fails if another tensor shares its storage, and `retain` holds it for writing
until the launch is complete. Where it cannot be seen that blocks keep to tiles of their own, the function is
unsafe and leaves that to its caller. Knows neither Tile IR nor the body of the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilebuild.translator.folding import Generic
from tilebuild.translator.rust.tree import Parameter
from tilebuild.translator.rust.types import ScalarType, TensorType


@dataclass(frozen=True)
class Grid:
    """The grid as Rust expressions of type i32 over `x.shape()[0]`, scalars and constants of these names."""

    dimensions: tuple[str, ...]
    constants: tuple[str, ...] = ()
    helpers: frozenset[str] = frozenset()


@dataclass
class Launcher:
    """What one launcher needs to know of its entry."""

    module: str
    entry: str
    parameters: Sequence[Parameter]
    written: Sequence[str]  # names of the parameters that the kernel writes
    constants: Mapping[str, int]
    grid: Grid | None
    hints: Mapping[str, int] = field(default_factory=dict)
    generics: Sequence[Generic] = ()
    own_axes: frozenset[int] = frozenset()  # of the grid, along which blocks keep to tiles of their own

    @property
    def shared_axes(self) -> list[int]:
        """Axes of the grid along which blocks may meet in one tile."""
        used = range(3 if self.grid is None else len(self.grid.dimensions))
        return [axis for axis in used if axis not in self.own_axes]

    @property
    def is_unsafe(self) -> bool:
        """Whether its caller must keep blocks apart: it has no own axis, or a formula that uses others."""
        return bool(self.shared_axes) and (self.grid is not None or not self.own_axes)


#: Arithmetic of grid formulas, as Python means it.
_HELPERS: Mapping[str, str] = {
    "blocks": """
/// A grid dimension; a negative count means none.
fn blocks(count: i32) -> u32 {
    count.max(0).unsigned_abs()
}
""",
    "ceil_div": """
/// `a / b` rounded up.
fn ceil_div(a: i32, b: i32) -> i32 {
    -floor_div(-a, b)
}
""",
    "floor_div": """
/// `a // b` of Python.
fn floor_div(a: i32, b: i32) -> i32 {
    let quotient = a / b;
    if a % b != 0 && (a < 0) != (b < 0) {
        quotient - 1
    } else {
        quotient
    }
}
""",
    "floor_mod": """
/// `a % b` of Python.
fn floor_mod(a: i32, b: i32) -> i32 {
    a - b * floor_div(a, b)
}
""",
}
_NEEDS: Mapping[str, frozenset[str]] = {
    "ceil_div": frozenset({"floor_div"}),
    "floor_mod": frozenset({"floor_div"}),
}


def uses(launchers: Sequence[Launcher]) -> list[str]:
    """The `use` lines at the top of the file."""
    refuses = any(one.generics or (one.shared_axes and not one.is_unsafe) for one in launchers)
    names = "{Error, kernel_launch_error_result}" if refuses else "Error"
    lines = [f"use cutile::error::{names};"]
    elements = {p.type.element for one in launchers for p in one.parameters if isinstance(p.type, TensorType)}
    half = sorted(elements & {"f16", "bf16"})
    if half:
        lines.append(
            f"use cutile::half::{{{', '.join(half)}}};" if len(half) > 1 else f"use cutile::half::{half[0]};"
        )
    lines.append("use cutile::prelude::*;")
    if any(one.hints for one in launchers):
        lines.append("use cutile::tile_kernel::CompileOptions;")
    return lines


def helpers(launchers: Sequence[Launcher]) -> list[str]:
    """The private functions that the launchers call."""
    names: set[str] = set()
    for one in launchers:
        if one.grid is not None:
            names |= {"blocks"} | one.grid.helpers
    for name in tuple(names):
        names |= _NEEDS.get(name, frozenset())
    return [_HELPERS[name] for name in sorted(names)]


def text(one: Launcher) -> list[str]:
    """The lines of a launcher."""
    written = [p for p in one.parameters if p.local.name in one.written]
    lines = [f"/// Launches [`{one.module}::{one.entry}`] and waits for it.", "///"]
    if one.grid is None:
        lines += ["/// `grid` is the number of blocks along each axis.", "///"]
    if one.is_unsafe:
        lines += [
            "/// # Safety",
            "///",
            "/// No two blocks of the grid access the same tile of an array that is",
        ]
        lines += ["/// written: where the kernel stores is computed in a way that proves nothing.", "///"]
    fails = "the launch fails" if not one.generics else "no such instance was proven, or the launch fails"
    if one.shared_axes and not one.is_unsafe:
        axes = " or ".join(str(axis) for axis in one.shared_axes)
        fails = f"the grid has more than one block along axis {axes}, or {fails}"
    lines += ["/// # Errors", "///", f"/// When {fails}.", "///", "/// # Panics", "///"]
    lines.append(f"/// When another tensor shares the storage of {_listed(p.local.name for p in written)}.")
    count = len(one.parameters) + (one.grid is None)
    if count > 7:
        lines.append('#[expect(clippy::too_many_arguments, reason = "the parameters of the Python kernel")]')
    keyword = "pub unsafe fn" if one.is_unsafe else "pub fn"
    lines.append(f"{keyword} {one.entry}{_generics(one)}({_signature(one)}) -> Result<(), Error> {{")
    lines += [f"    {line}" for line in _body(one, written)]
    return [*lines, "}"]


def _listed(names: object) -> str:
    words = [f"`{n}`" for n in names]  # type: ignore[attr-defined]
    return " or ".join(words)


def _generics(one: Launcher) -> str:
    listed = [str(g) if g.constant else f"{g.name}: DType" for g in one.generics]
    return f"<{', '.join(listed)}>" if listed else ""


def _instances(one: Launcher) -> list[str]:
    """Refuses all arguments but those whose machine code was compared with Python's."""
    if not one.generics:
        return []
    own = [g.name if g.constant else f"{g.name}::DTYPE.as_str()" for g in one.generics]
    rows = zip(*([v if g.constant else f'"{v}"' for v in g.values] for g in one.generics), strict=True)
    proven = list(dict.fromkeys(", ".join(row) for row in rows))
    single = len(own) == 1
    listed = ", ".join(p if single else f"({p})" for p in proven)
    instance = own[0] if single else f"({', '.join(own)})"
    names = ", ".join(g.name for g in one.generics)
    generics = ", ".join(f"{o}.to_string()" for o in own)
    return [
        f"if ![{listed}].contains(&{instance}) {{",
        f'    return kernel_launch_error_result("{one.entry}: no proven instance with this {names}");',
        "}",
        f"let generics = vec![{generics}];",
    ]


def _signature(one: Launcher) -> str:
    parts = []
    for parameter in one.parameters:
        name = parameter.local.name
        if isinstance(parameter.type, TensorType):
            reference = "&mut " if name in one.written else "&"
            parts.append(f"{name}: {reference}Tensor<{parameter.type.element}>")
        else:
            parts.append(f"{name}: {parameter.type}")
    if one.grid is None:
        parts.append("grid: (u32, u32, u32)")
    return ", ".join(parts)


def _body(one: Launcher, written: Sequence[Parameter]) -> list[str]:
    lines = _instances(one)
    if one.grid is not None:
        fixed = [name for name in one.grid.constants if name in one.constants]
        lines = [f"const {name}: i32 = {one.constants[name]};" for name in fixed] + lines
        dimensions = [f"blocks({d})" for d in one.grid.dimensions]
        dimensions += ["1"] * (3 - len(dimensions))
        lines.append(f"let grid = ({', '.join(dimensions)});")
        lines += ["if grid.0 == 0 || grid.1 == 0 || grid.2 == 0 {", "    return Ok(());", "}"]
    elif not one.is_unsafe and one.shared_axes:
        crowded = " || ".join(f"grid.{axis} > 1" for axis in one.shared_axes)
        fact = f"{one.entry}: blocks along this axis of the grid would store the same tiles"
        lines += [f"if {crowded} {{", f'    return kernel_launch_error_result("{fact}");', "}"]
    for parameter in written:
        assert isinstance(parameter.type, TensorType)
        ones = ", ".join(["1"] * len(parameter.type.shape))
        lines.append(f"let {parameter.local.name} = {parameter.local.name}.partition([{ones}]);")
    lines.append("with_context(move |ctx| {")
    retained = f"{written[0].local.name}.retain(ctx)"
    for parameter in written[1:]:
        retained += f".and_then(|()| {parameter.local.name}.retain(ctx))"
    lines.append(f"    let launched = {retained}.and_then(|()| {{")
    for parameter in written:
        assert isinstance(parameter.type, TensorType)
        name = parameter.local.name
        lines.append(f"        let {name}: &Tensor<{parameter.type.element}> = {name}.unpartition();")
    lines += [
        "        // SAFETY: what the kernel writes is borrowed mutably, its storage is unshared",
        "        // (`partition`) and held for writing (`retain`); `ctx` is this operation's context.",
        f"        // {_apart(one)}",
    ]
    arguments = ", ".join(p.local.name for p in one.parameters)
    options = _options(one.hints)
    generics = ".generics(generics)" if one.generics else ""
    call = f"{one.module}::{one.entry}({arguments}){generics}.grid(grid){options}"
    lines.append(f"        unsafe {{ {call}.execute(ctx) }}")
    return [*lines, "    });", "    value(launched.map(|_| ()))", "})", ".sync()??;", "Ok(())"]


def _apart(one: Launcher) -> str:
    if one.is_unsafe:
        return "The caller keeps blocks from meeting in one tile."
    return "Each block stores at its own index along the grid."


def _options(hints: Mapping[str, int]) -> str:
    if not hints:
        return ""
    chained = "".join(f".{name}({value})" for name, value in sorted(hints.items()))
    return f".compile_options(CompileOptions::default(){chained})"


def can_launch(parameters: Sequence[Parameter], written: Sequence[str]) -> bool:
    """Whether the stock launcher of cutile gives every fact of these parameters truly.

    It lists divisors by dimension where the compiler counts run-time dimensions only, so that a constant
    length would shift them; such an entry is launched from its compiled form alone.
    """
    return bool(written) and all(
        isinstance(p.type, ScalarType)
        or (
            isinstance(p.type, TensorType)
            and all(n == -1 for n in p.type.shape)
            and p.type.element in _DTYPES
        )
        for p in parameters
    )


_DTYPES = frozenset({"f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"})
