"""How operations in general are spelled: a call on tiles, the same on scalars, a shim; markers, literals,
shapes."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal

from tilebuild.tileir import tree as ir
from tilebuild.translator.emitter import Emitter
from tilebuild.translator.refusal import Refusal
from tilebuild.translator.rust.tree import Call, Expr, Number, Path, Unsafe, Var
from tilebuild.translator.rust.types import TileType, extents

#: Words of the IR -> marker types of cutile.
_MARKERS: Mapping[str, str] = {
    "nearest_even": "NearestEven",
    "zero": "Zero",
    "negative_inf": "NegativeInf",
    "positive_inf": "PositiveInf",
    "approx": "Approx",
    "full": "Full",
    "nearest_int_to_zero": "NearestIntToZero",
    "nearest_away": "NearestAway",
    "none": "None",
    "ordered": "Ordered",
    "unordered": "Unordered",
    "signed": "Signed",
    "unsigned": "Unsigned",
    "weak": "Weak",
    "relaxed": "Relaxed",
    "acquire": "Acquire",
    "release": "Release",
    "acq_rel": "AcqRel",
    "tl_blk": "TileBlock",
    "device": "Device",
    "sys": "System",
    "neg_zero": "NegZero",
    "nan": "Nan",
    "pos_inf": "PosInf",
    "neg_inf": "NegInf",
    "": "None",
    "no_signed_wrap": "NoSignedWrap",
    "no_unsigned_wrap": "NoUnsignedWrap",
    "no_wrap": "NoWrap",
}


def marker(module: str, word: str | bool) -> str:
    """`rounding::NearestEven` from `nearest_even`; flags are Enabled or Disabled."""
    if isinstance(word, bool):
        return f"{module}::{'Enabled' if word else 'Disabled'}"
    if word not in _MARKERS:
        choices = ", ".join(w for w in _MARKERS if w)
        raise Refusal(f"{module} {word} has no Rust form in cutile 0.5.0", f"choose among {choices}")
    return f"{module}::{_MARKERS[word]}"


def shape(lengths: Sequence[int]) -> Expr:
    return Path(f"shape![{extents(tuple(lengths))}]")


def array_literal(values: Sequence[int]) -> Expr:
    return Path(f"const_array![{', '.join(map(str, values))}]")


def check_sign(e: Emitter, op: ir.Operation, value: ir.Value, sign: str) -> None:
    """The Rust type of the operand decides the sign of these operations; it must be the one that Python
    chose."""
    if sign_of(e.element(value)) != sign:
        raise Refusal(
            f"{op.name} treats an operand as {sign} that is {sign_of(e.element(value))} elsewhere",
            "convert the operand explicitly, for instance with ct.astype",
        )


def sign_of(element: str) -> str:
    return "unsigned" if element.startswith("u") or element == "bool" else "signed"


def with_sign(e: Emitter, value: ir.Value, sign: str) -> tuple[Expr, str]:
    """The value as an operand of this sign, with its Rust element type; a `bitcast` where it has the other
    sign."""
    element = e.element(value)
    if sign_of(element) == sign or element == "bool":
        return e.value(value), element
    other = ("u" if sign == "unsigned" else "i") + element[1:]
    if e.is_scalar(value):
        doc = "The same bits as another type."
        name = e.helpers.scalar(f"scalar_bitcast_{element}_{other}", doc, "bitcast(x)", (element,), other)
        return Call(name, (e.value(value),)), other
    kind = TileType(other, e.shape(value))
    return e.temporary(f"{sign}_{hint(e, value)}", kind, Call("bitcast", (e.value(value),))), other


def hint(e: Emitter, value: ir.Value) -> str:
    """A word for a value, to name what is made of it."""
    expression = e.value(value)
    return expression.local.hint if isinstance(expression, Var) else "value"


def apply(
    e: Emitter,
    op: ir.Operation,
    function: str,
    groups: tuple[str, ...],
    markers: tuple[str, ...],
    fallback: str,
    *,
    unsafe: str = "",
    infers: bool = True,
) -> None:
    """`let x = function(a, b, markers…);`, through a helper on scalars where the result has rank 0."""
    operands = [op.group(g)[0] for g in groups]
    result = op.results[0]
    if not e.is_scalar(result):
        arguments = (*(e.value(v) for v in operands), *map(Path, markers))
        call: Expr = Call(function, arguments)
        e.let(result, Unsafe(call, unsafe) if unsafe else call, fallback, infers=infers)
        return
    sources = tuple(e.element(v) for v in operands)
    body = f"{function}({', '.join([*'xyz'[: len(operands)], *markers])})"
    if unsafe:
        body = f"unsafe {{ {body} }}"
    flags = [_snake(m.rpartition("::")[2]) for m in markers if not m.endswith(("NearestEven", "Disabled"))]
    types = list(dict.fromkeys([*sources, e.element(result)]))
    name = "_".join(["scalar", function, *flags, *types])
    e.helpers.scalar(name, f"`{function}` on scalars.", body, sources, e.element(result), unsafe)
    e.let(result, Call(name, tuple(e.value(v) for v in operands)), fallback, infers=True)


def _snake(word: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in word).strip("_")


def shim(
    e: Emitter, op: ir.Operation, groups: tuple[str, ...], named: tuple[str, ...], fallback: str
) -> None:
    """The operation itself, declared for exactly these types."""
    operands = [op.group(g)[0] for g in groups]
    result = op.results[0]
    kinds = [tile_text(e, v) for v in operands]
    name = "_".join([shim_name(op.name, [*operands, result], e), *_flags(named)])
    parameters = ", ".join(f"{g}: {k}" for g, k in zip(groups, kinds, strict=True))
    declare(e, name, op.name, groups, named, f"({parameters}) -> {tile_text(e, result)}")
    arguments = tuple(as_tile(e, v) for v in operands)
    let_tile(e, result, Call(name, arguments), fallback)


def _flags(named: Sequence[str]) -> list[str]:
    """Words for the attributes of a shim that are not the usual ones."""
    values = [n.partition("=")[2] for n in named]
    return [v for v in values if v not in ("none", "nearest_even", "full", "inferred_signedness")]


def declare(
    e: Emitter,
    name: str,
    operation: str,
    params: tuple[str, ...],
    named: tuple[str, ...],
    signature: str,
    more: str = "",
    prefix: str = "cuda_tile.",
) -> None:
    """Declares an operation. Without its prefix a name takes the general path of cutile, which assumes no
    facts."""
    listed = ", ".join(f'"{p}"' for p in params)
    attributes = f", named_attributes = [{', '.join(_quoted(n) for n in named)}]" if named else ""
    allow = "" if signature.startswith("()") else "#[allow(unused_variables)]\n"
    e.helpers.add(
        name,
        f"""
/// `{operation}`, declared here because cutile 0.5.0 has no public spelling with these types or flags.
{allow}#[cuda_tile::op(name = "{prefix}{operation}", params = [{listed}]{attributes}{more})]
pub fn {name}{signature} {{
    unreachable!()
}}
""",
    )


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def shim_name(operation: str, values: Sequence[ir.Value], e: Emitter) -> str:
    words = [operation]
    for value in values:
        word = e.element(value) + "".join(f"_{n}" for n in e.shape(value))
        if words[-1] != word:
            words.append(word)
    return "_".join(words)


def tile_text(e: Emitter, value: ir.Value) -> str:
    """The type of a value as a tile, rank 0 included."""
    return str(TileType(e.element(value), e.shape(value)))


def as_tile(e: Emitter, value: ir.Value) -> Expr:
    """The value as a tile; a scalar gets a variable of rank 0."""
    if not e.is_scalar(value):
        return e.value(value)
    kind = TileType(e.element(value), ())
    return e.temporary("operand", kind, Call("scalar_to_tile", (e.value(value),)))


def let_tile(e: Emitter, value: ir.Value, expression: Expr, fallback: str, *, infers: bool = False) -> None:
    """Binds a value to an expression that is a tile, which becomes a plain scalar where the rank is 0."""
    if not e.is_scalar(value):
        e.let(value, expression, fallback, infers=infers)
        return
    kind = TileType(e.element(value), ())
    tile = e.temporary(f"{e.program.name(value) or fallback}_tile", kind, expression, infers=infers)
    e.let(value, Call("tile_to_scalar", (tile,)), fallback)


# --- literals -------------------------------------------------------------------------------------


def number(e: Emitter, value: bool | int | float, element: str) -> Expr | None:
    """A literal of this element type, or None where no Rust literal gives these bits."""
    if element == "bool":
        return Path("true" if value else "false")
    if element in ("f32", "f64"):
        if not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0):
            return None
        return Number(decimal(float(value), element), element)
    if element in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64") and -(2**31) < value < 2**31:
        if element.startswith("u") and value < 0:
            return None
        return Number(str(int(value)), element)
    return None


def decimal(value: float, element: str) -> str:
    """The shortest plain decimal that reads back as this number."""
    if element == "f64":
        text = repr(value)
    else:
        text = next(t for t in (f"{value:.{p}g}" for p in range(1, 18)) if _single(float(t)) == value)
    plain = format(Decimal(text), "f")
    return plain if "." in plain else plain + ".0"


def _single(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.inf
