"""Elementwise arithmetic, comparison and selection."""

from __future__ import annotations

from collections.abc import Mapping

from tilebuild.tileir import tree as ir
from tilebuild.translator.emitter import Attributes, Emitter, Row
from tilebuild.translator.ops.spelling import apply, marker, shim, sign_of, with_sign
from tilebuild.translator.refusal import Refusal
from tilebuild.translator.rust.tree import Binary, Call, Expr, Path
from tilebuild.translator.rust.types import TileType

#: Element types whose operators cutile 0.5.0 does not implement ("Binary operation is not implemented").
_NO_OPERATORS = frozenset({"i16", "u16", "tf32", "f8e4m3fn", "f8e5m2", "f8e8m0fnu"})

_PREDICATES: Mapping[str, tuple[str, str]] = {
    "equal": ("==", "Equal"),
    "not_equal": ("!=", "NotEqual"),
    "less_than": ("<", "LessThan"),
    "less_than_or_equal": ("<=", "LessThanOrEqual"),
    "greater_than": (">", "GreaterThan"),
    "greater_than_or_equal": (">=", "GreaterThanOrEqual"),
}

_TILE_COMPARISONS: Mapping[str, str] = {
    "==": "eq_tile",
    "!=": "ne_tile",
    "<": "lt_tile",
    "<=": "le_tile",
    ">": "gt_tile",
    ">=": "ge_tile",
}

#: Names of temporaries that Python does not name.
_WORDS: Mapping[str, str] = {
    "addi": "sum",
    "addf": "sum",
    "subi": "difference",
    "subf": "difference",
    "muli": "product",
    "mulf": "product",
    "divi": "quotient",
    "divf": "quotient",
    "remi": "remainder",
    "remf": "remainder",
    "andi": "both",
    "ori": "either",
    "xori": "differ",
    "negf": "negated",
    "negi": "negated",
    "select": "selected",
    "cmpi": "mask",
    "cmpf": "mask",
    "mini": "smaller",
    "minf": "smaller",
    "maxi": "larger",
    "maxf": "larger",
    "fma": "sum",
    "exp": "exponential",
    "exp2": "power",
}


def word(name: str) -> str:
    return _WORDS.get(name, "value")


def _operator(symbol: str) -> Row:
    """`a + b` of integers; through a shim for element types without operators and for promised ranges."""

    def row(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
        overflow = attributes.word("overflow", "none")
        if overflow == "none":
            _binary(e, op, symbol, "overflow=none")
        else:
            shim(e, op, ("lhs", "rhs"), (f"overflow={overflow}",), word(op.name))

    return row


def _binary(e: Emitter, op: ir.Operation, symbol: str, shim_attribute: str) -> None:
    left, right = op.operands
    result = op.results[0]
    if e.element(result) in _NO_OPERATORS:
        shim(e, op, ("lhs", "rhs"), (shim_attribute,) if shim_attribute else (), word(op.name))
        return
    e.let(result, Binary(symbol, e.value(left), e.value(right)), word(op.name), infers=True)


def _float(symbol: str) -> Row:
    """`a + b` for the default flags, else `addf(a, b, rounding::…, ftz::…)`."""

    def row(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
        rounding = attributes.word("rounding", "nearest_even")
        flush = attributes.flag("flush_to_zero")
        if rounding == "nearest_even" and not flush:
            _binary(e, op, symbol, "rounding_mode=nearest_even")
        elif rounding == "full":
            # The public `divf` accepts `rounding::Full`, but the byte code writer then misses the attribute.
            named = ("rounding_mode=full", *(("flush_to_zero=unit",) if flush else ()))
            if flush:
                raise Refusal(
                    f"{op.name} with full rounding and flush_to_zero has no Rust form in cutile 0.5.0",
                    "use ct.RoundingMode.APPROX, or leave flush_to_zero out",
                )
            shim(e, op, ("lhs", "rhs"), named, word(op.name))
        else:
            apply(
                e,
                op,
                op.name,
                ("lhs", "rhs"),
                (marker("rounding", rounding), marker("ftz", flush)),
                word(op.name),
            )

    return row


def _function(name: str, groups: tuple[str, ...], *markers: str) -> Row:
    """A public function of the same meaning; `markers` are the flags it takes, in order."""

    def row(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
        values: list[str] = []
        for flag in markers:
            match flag:
                case "rounding":
                    values.append(marker("rounding", attributes.word("rounding", "nearest_even")))
                case "ftz":
                    values.append(marker("ftz", attributes.flag("flush_to_zero")))
                case "nan":
                    values.append(marker("nan", attributes.flag("propagate_nan")))
                case "overflow":
                    values.append(marker("overflow", attributes.word("overflow", "none")))
        apply(e, op, name, groups, tuple(values), word(op.name))

    return row


def _with_rounding(name: str) -> Row:
    """`exp(x)`, or its unsafe form that takes a rounding mode."""

    def row(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
        rounding = attributes.word("rounding", "full")
        if rounding == "full":
            apply(e, op, name, ("source",), (), word(op.name))
        else:
            apply(
                e,
                op,
                f"{name}_with_rounding",
                ("source",),
                (marker("rounding", rounding),),
                word(op.name),
                unsafe="any rounding mode is defined for every input.",
            )

    return row


def _by_sign(row: Row) -> Row:
    """The row, where the Rust type of the operands has the operation's sign; else the operation with its sign
    written down."""

    def signed(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
        sign = attributes.word("signedness")
        if sign_of(e.element(op.operands[0])) == sign:
            row(e, op, attributes)
            return
        if "rounding" in op.attributes:  # a shim cannot name the rounding of a division
            _converted(e, op, sign, marker("rounding", attributes.word("rounding")))
        else:
            shim(e, op, ("lhs", "rhs"), (f"signedness={sign}",), word(op.name))

    return signed


def _converted(e: Emitter, op: ir.Operation, sign: str, rounding: str) -> None:
    """The operation on the same bits with the other sign."""
    result = op.results[0]
    if e.is_scalar(result):
        raise Refusal(f"{op.name} takes numbers as {sign} that are not", "convert them, with ct.astype")
    (left, element), (right, _) = (with_sign(e, v, sign) for v in op.operands)
    kind = TileType(element, e.shape(result))
    call = Call(op.name, (left, right, Path(rounding)))
    e.let(result, Call("bitcast", (e.temporary(word(op.name), kind, call),)), word(op.name))


def divi(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    rounding = attributes.word("rounding", "zero")
    result = op.results[0]
    left, right = (e.value(v) for v in op.operands)
    scalar = e.is_scalar(result) and e.element(result) not in _NO_OPERATORS
    if rounding == "zero" and e.element(result) not in _NO_OPERATORS:
        e.let(result, Binary("/", left, right), "quotient", infers=True)
    elif scalar and rounding == "negative_inf":
        e.let(result, Call(e.helpers.floor_div(e.element(result)), (left, right)), "quotient", infers=True)
    elif scalar and rounding == "positive_inf" and e.element(result) == "i32":
        e.let(result, Call("ceil_div", (left, right)), "quotient", infers=True)
    else:
        apply(e, op, "divi", ("lhs", "rhs"), (marker("rounding", rounding),), "quotient")


def remi(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    _binary(e, op, "%", "signedness=inferred_signedness")


def shri(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    apply(e, op, "shri", ("lhs", "rhs"), (), "shifted")


def _extremum(name: str) -> Row:
    """`min(a, b)` on scalars, `mini(a, b)` on tiles."""

    def row(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
        result = op.results[0]
        if e.is_scalar(result) and e.element(result) in ("i32", "i64"):
            e.let(result, Call(name[:3], tuple(e.value(v) for v in op.operands)), word(op.name), infers=True)
        else:
            apply(e, op, name, ("lhs", "rhs"), (), word(op.name))

    return row


def _float_extremum(name: str) -> Row:
    """`max_tile(a, b)` for the default flags, else `maxf(a, b, nan::…, ftz::…)`."""
    plain = _function(f"{name}_tile", ("lhs", "rhs"))
    flags = _function(f"{name}f", ("lhs", "rhs"), "nan", "ftz")

    def row(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
        (flags if op.attributes or e.is_scalar(op.results[0]) else plain)(e, op, attributes)

    return row


def _bitwise(symbol: str) -> Row:
    def row(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
        if e.element(op.results[0]) in _NO_OPERATORS or symbol == "^":
            apply(e, op, op.name, ("lhs", "rhs"), (), word(op.name))
        else:
            _binary(e, op, symbol, "")

    return row


def cmpi(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    symbol, predicate = _PREDICATES[attributes.word("predicate")]
    sign = attributes.word("signedness")
    if symbol in ("==", "!="):
        sign = sign_of(e.element(op.operands[0]))  # equality has no sign
    (left, element), (right, _) = (with_sign(e, v, sign) for v in op.operands)
    if e.is_scalar(op.operands[0]) and element not in _NO_OPERATORS and element != "bool":
        e.let(op.results[0], Binary(symbol, left, right), "condition", infers=True)
    elif e.is_scalar(op.operands[0]):
        apply(e, op, "cmpi", ("lhs", "rhs"), (f"predicate::{predicate}",), "condition")
    elif element in _NO_OPERATORS:
        call = Call("cmpi", (left, right, Path(f"predicate::{predicate}")))
        e.let(op.results[0], call, "mask", infers=True)
    else:
        e.let(op.results[0], Call(_TILE_COMPARISONS[symbol], (left, right)), "mask", infers=True)


def cmpf(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    symbol, predicate = _PREDICATES[attributes.word("predicate")]
    ordering = attributes.word("ordering")
    left, right = op.operands
    # Rust's operators are ordered comparisons for every predicate in cutile 0.5.0, `!=` included.
    if e.is_scalar(left) and ordering == "ordered":
        e.let(op.results[0], Binary(symbol, e.value(left), e.value(right)), "condition", infers=True)
    elif ordering == "ordered" and not e.is_scalar(left) and e.element(left) not in _NO_OPERATORS:
        call = Call(_TILE_COMPARISONS[symbol], (e.value(left), e.value(right)))
        e.let(op.results[0], call, "mask", infers=True)
    else:
        markers = (f"predicate::{predicate}", marker("cmp_ordering", ordering))
        apply(e, op, "cmpf", ("lhs", "rhs"), markers, "mask")


def select(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:

    result = op.results[0]
    idiom = e.floor_mod(op)
    if idiom is not None:
        call = Call(e.helpers.use("floor_mod"), (e.value(idiom.dividend), e.value(idiom.divisor)))
        e.let(result, call, "remainder", infers=True)
        return
    operands: tuple[Expr, ...] = tuple(e.value(v) for v in op.operands)
    name = "select"
    if e.is_scalar(result):
        element = e.element(result)
        doc = "`y` where `x` holds, else `z`; both are computed."
        name = e.helpers.scalar(
            f"choose_{element}", doc, "select(x, y, z)", ("bool", element, element), element
        )
    e.let(result, Call(name, operands), "selected", infers=True)


def fpowi(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    apply(e, op, "fpowi", ("source", "exponent"), (), "power", unsafe="the exponent is any integer.")


ROWS: Mapping[str, Row] = {
    "addi": _operator("+"),
    "subi": _operator("-"),
    "muli": _operator("*"),
    "shli": _operator("<<"),
    "addf": _float("+"),
    "subf": _float("-"),
    "mulf": _float("*"),
    "divf": _float("/"),
    "divi": _by_sign(divi),
    "remi": _by_sign(remi),
    "shri": _by_sign(shri),
    "mini": _by_sign(_extremum("mini")),
    "maxi": _by_sign(_extremum("maxi")),
    "andi": _bitwise("&"),
    "ori": _bitwise("|"),
    "xori": _bitwise("^"),
    "negi": _function("negi", ("source",), "overflow"),
    "absi": _function("absi", ("source",)),
    "mulhii": _function("mulhii", ("x", "y")),
    "remf": _function("remf", ("lhs", "rhs")),
    "negf": _function("negf", ("source",)),
    "absf": _function("absf", ("source",)),
    "atan2": _function("atan2", ("x", "y")),
    "fma": _function("fma", ("lhs", "rhs", "acc"), "rounding", "ftz"),
    "maxf": _float_extremum("max"),
    "minf": _float_extremum("min"),
    "fpowf": _function("pow", ("source", "exponent")),
    "fpowi": fpowi,
    "ceil": _function("ceil", ("source",)),
    "floor": _function("floor", ("source",)),
    "sin": _function("sin", ("source",)),
    "cos": _function("cos", ("source",)),
    "tan": _function("tan", ("source",)),
    "sinh": _function("sinh", ("source",)),
    "cosh": _function("cosh", ("source",)),
    "log": _function("log", ("source",)),
    "log2": _function("log2", ("source",)),
    "exp": _with_rounding("exp"),
    "tanh": _with_rounding("tanh"),
    "exp2": _function("exp2", ("source",), "ftz"),
    "rsqrt": _function("rsqrt", ("source",), "ftz"),
    "sqrt": _function("sqrt", ("source",), "rounding", "ftz"),
    "cmpi": cmpi,
    "cmpf": cmpf,
    "select": select,
}
