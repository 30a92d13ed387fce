"""Block ids, matrix products, and what a kernel tells its author: assertions and prints."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from tilebuild.tileir import tree as ir
from tilebuild.translator.emitter import Attributes, Emitter, Row
from tilebuild.translator.ops.pointers import let_token, some_token
from tilebuild.translator.ops.spelling import (
    as_tile,
    declare,
    marker,
    shim_name,
    sign_of,
    tile_text,
    with_sign,
)
from tilebuild.translator.refusal import Refusal
from tilebuild.translator.rust.tree import Call, Expr, LetTuple, Macro, Member, Path, TupleOf, Unsafe, Var
from tilebuild.translator.rust.types import ScalarType, TupleType


def _coordinates(function: str, fallback: str) -> Row:
    """`get_tile_block_id().0`; by a shim on the literal rung: the public function assumes bounds."""

    def row(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
        name = function
        if e.rung.literal:
            name = f"plain_{function.removeprefix('get_')}"
            declare(e, name, function, (), (), "() -> (i32, i32, i32)", prefix="")
        if function == "get_tile_block_id":
            e.block_ids.update({result: axis for axis, result in enumerate(op.results)})
        call = Call(name, ())
        used = [axis for axis, result in enumerate(op.results) if result in e.uses]
        if len(used) == 1:
            e.let(op.results[used[0]], Member(call, used[0]), f"{fallback}_{'xyz'[used[0]]}", infers=True)
        elif used:
            locals_ = tuple(
                e.local(r, f"{fallback}_{a}") if r in e.uses else None
                for r, a in zip(op.results, "xyz", strict=True)
            )
            e.emit(LetTuple(locals_, TupleType((ScalarType("i32"),) * 3), call))
            for result, local in zip(op.results, locals_, strict=True):
                if local is not None:
                    e.bind(result, Var(local))

    return row


def mmaf(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    operands = tuple(e.value(v) for v in op.operands)
    call: Expr = Call("mma", operands)
    if attributes.flag("fast_acc"):
        fast = Call("mmaf_with_fast_acc", (*operands, Path("fast_acc::Enabled")))
        call = Unsafe(fast, "a fast accumulator is less precise, not unsound.")
    e.let(op.results[0], call, "acc", infers=True)


def mmai(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    signs = tuple(Path(marker("signedness", attributes.word(f"signedness_{s}"))) for s in ("lhs", "rhs"))
    lhs, rhs, acc = op.operands
    # Both factors have one Rust type; their signs are told apart by the markers.
    factors = (e.value(lhs), with_sign(e, rhs, sign_of(e.element(lhs)))[0])
    e.let(op.results[0], Call("mmai", (*factors, e.value(acc), *signs)), "acc", infers=True)


def mmaf_scaled(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    groups = ("lhs", "rhs", "acc", "lhs_scale", "rhs_scale")
    e.let(
        op.results[0], Call("mmaf_scaled", tuple(e.value(op.group(g)[0]) for g in groups)), "acc", infers=True
    )


def assert_(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    message = attributes.word("message")
    condition = op.operands[0]
    value = e.value(condition) if e.is_scalar(condition) else e.named(condition)
    e.emit(Macro("cuda_tile_assert", (value, Path(quoted(message)))))


def print_tko(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    text = attributes.word("str")
    arguments = op.group("args")
    if len(arguments) == 1:
        tile = as_tile(e, arguments[0])
        call = Call("print_tko", (Path(quoted(text)), tile, some_token(e, op.group("token"))))
    else:
        call = _print_many(e, op, text, arguments)
    let_token(e, op.results[0], call, "printed")


def _print_many(e: Emitter, op: ir.Operation, text: str, arguments: tuple[ir.Value, ...]) -> Call:
    """A shim for each text: the public function prints one value."""
    if "=" in text:
        fact = "a print of several values whose text contains `=` is cut there by cutile 0.5.0"
        raise Refusal(fact, "print one value at a time, or write `:` for `=`")
    if len(arguments) == 0 or not op.group("token"):
        raise Refusal("a print without values has no Rust form in cutile 0.5.0", "print a value with it")
    types = ", ".join(tile_text(e, v) for v in arguments)
    name = f"{shim_name('print', arguments, e)}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    more = ", has_variadic_params = true"
    signature = f"(args: ({types}), token: Token) -> Token"
    declare(e, name, "print", ("args", "token"), (f"str={text}",), signature, more, prefix="")
    values = TupleOf(tuple(as_tile(e, v) if e.is_scalar(v) else e.named(v) for v in arguments))
    return Call(name, (values, e.value(op.group("token")[0])))


def quoted(text: str) -> str:
    """A Rust string literal."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(c, c) for c in text) + '"'


ROWS: Mapping[str, Row] = {
    "get_tile_block_id": _coordinates("get_tile_block_id", "block"),
    "get_num_tile_blocks": _coordinates("get_num_tile_blocks", "num_blocks"),
    "mmaf": mmaf,
    "mmai": mmai,
    "mmaf_scaled": mmaf_scaled,
    "assert": assert_,
    "print_tko": print_tko,
}
