"""Byte code with every operation of cuda-tile 1.7.0 in every printed form, written by its own encoder.

`CASES` maps a name to a function that adds operations to a body. Each case is a module of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from cuda.tile._bytecode import encodings as e
from cuda.tile._bytecode.attribute import (
    Bool,
    Bounded,
    DivBy,
    Float,
    Integer,
    LoadStoreHints,
    make_load_store_hints,
)
from cuda.tile._bytecode.debug_info import MISSING_DEBUG_ATTR_ID
from cuda.tile._bytecode.float import float_bit_size, float_to_bits
from cuda.tile._bytecode.type import PaddingValue, PtrAttr, SimpleType
from cuda.tile._bytecode.version import BytecodeVersion
from cuda.tile._bytecode.writer import write_bytecode

DYNAMIC = -(1 << 63)
ORDERS = (
    (e.MemoryOrderingSemantics.WEAK, None),
    (e.MemoryOrderingSemantics.RELAXED, e.MemoryScope.DEVICE),
    (e.MemoryOrderingSemantics.RELAXED, e.MemoryScope.TL_BLK),
)
HINTS = (
    None,
    make_load_store_hints({}),
    make_load_store_hints({"default": LoadStoreHints()}),
    make_load_store_hints({"default": LoadStoreHints(latency=3), "sm_100": LoadStoreHints(allow_tma=False)}),
)


class Body:
    """A body under construction. `value("F32", 8)` is a value, `type("F32", 8)` only its type."""

    def __init__(self, writer: Any, code: Any, parameters: dict[str, Any]) -> None:
        self.types = writer.type_table
        self.writer = writer
        self.code = code
        self._parameters = parameters

    def type(self, element: str, *shape: int) -> Any:
        """`F32`, or `*F32` for a pointer."""
        if element.startswith("*"):
            pointer = self.types.pointer(self.types.simple(SimpleType[element[1:]]), PtrAttr.Missing)
            return self.types.tile(pointer, shape)
        return self.types.tile(self.types.simple(SimpleType[element]), shape)

    def value(self, element: str, *shape: int) -> Any:
        scalar = self._parameters[element]
        if not shape:
            return scalar
        ones = e.encode_ReshapeOp(self.code, self.type(element, *[1] * len(shape)), scalar)
        return e.encode_BroadcastOp(self.code, self.type(element, *shape), ones)

    @property
    def token_type(self) -> Any:
        return self.types.Token

    def token(self) -> Any:
        return e.encode_MakeTokenOp(self.code, self.token_type)

    def op(self, name: str, *arguments: Any) -> Any:
        return getattr(e, f"encode_{name}Op")(self.code, *arguments)

    def tensor_type(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        return self.types.tensor_view(self.types.F32, shape, strides, PtrAttr.Missing)

    def tensor(
        self,
        shape: tuple[int, ...] = (DYNAMIC, DYNAMIC),
        strides: tuple[int, ...] = (DYNAMIC, 1),
        index: str = "I32",
    ) -> Any:
        extent = self.value(index)
        dynamic = [[extent] * sum(n == DYNAMIC for n in extents) for extents in (shape, strides)]
        return self.op("MakeTensorView", self.tensor_type(shape, strides), self.value("*F32"), *dynamic)


ELEMENTS = ("I1", "I8", "I16", "I32", "I64", "F16", "F32", "F8E4M3FN", "F8E8M0FNU", "*F32", "*I32")


def module(case: Callable[[Body], None]) -> bytes:
    buffer = bytearray()
    with write_bytecode(1, buffer, BytecodeVersion.V_13_4) as writer:
        table = writer.type_table
        scratch = Body(writer, None, {})
        types = [scratch.type(element) for element in ELEMENTS]
        with writer.function("k", types, [], True, {}, MISSING_DEBUG_ATTR_ID) as (code, parameters):
            case(Body(writer, code, dict(zip(ELEMENTS, parameters, strict=True))))
            e.encode_ReturnOp(code, [])
        assert table is scratch.types
    return bytes(buffer)


CASES: dict[str, Callable[[Body], None]] = {}


def case(function: Callable[[Body], None]) -> Callable[[Body], None]:
    CASES[function.__name__] = function
    return function


@case
def unary_floats(b: Body) -> None:
    x = b.value("F32", 8)
    for name in ("AbsF", "Ceil", "CosH", "Cos", "Floor", "Log2", "Log", "NegF", "SinH", "Sin", "Tan"):
        b.op(name, b.type("F32", 8), x)
    for flush in (False, True):
        b.op("Exp2", b.type("F32", 8), x, flush)
        b.op("Rsqrt", b.type("F32", 8), x, flush)
    for name, rounding in product(("Exp", "TanH"), (e.RoundingMode.FULL, e.RoundingMode.APPROX)):
        b.op(name, b.type("F32", 8), x, rounding)


@case
def rounded_floats(b: Body) -> None:
    x = b.value("F32", 8)
    rounding = e.RoundingMode
    plain = (rounding.NEAREST_EVEN, rounding.ZERO, rounding.NEGATIVE_INF, rounding.POSITIVE_INF)
    for mode, flush in product(plain, (False, True)):
        for name in ("AddF", "SubF", "MulF", "DivF"):
            b.op(name, b.type("F32", 8), x, x, mode, flush)
        b.op("Fma", b.type("F32", 8), x, x, x, mode, flush)
        b.op("Sqrt", b.type("F32", 8), x, mode, flush)
    b.op("Sqrt", b.type("F32", 8), x, rounding.APPROX, True)
    b.op("DivF", b.type("F32", 8), x, x, rounding.APPROX, True)
    b.op("DivF", b.type("F32", 8), x, x, rounding.FULL, False)


@case
def binary_floats(b: Body) -> None:
    x, n = b.value("F32", 8), b.value("I32", 8)
    for name in ("Atan2", "FPowF", "RemF"):
        b.op(name, b.type("F32", 8), x, x)
    b.op("FPowI", b.type("F32", 8), x, n)
    for name, nan, flush in product(("MaxF", "MinF"), (False, True), (False, True)):
        b.op(name, b.type("F32", 8), x, x, nan, flush)
    for predicate, ordering in product(e.ComparisonPredicate, e.ComparisonOrdering):
        b.op("CmpF", b.type("I1", 8), x, x, predicate, ordering)


@case
def integers(b: Body) -> None:
    n, kind = b.value("I32", 8), b.type("I32", 8)
    b.op("AbsI", kind, n)
    for name in ("AndI", "OrI", "XOrI", "MulhiI"):
        b.op(name, kind, n, n)
    for overflow in e.IntegerOverflow:
        for name in ("AddI", "SubI", "MulI", "ShLI"):
            b.op(name, kind, n, n, overflow)
        b.op("TruncI", b.type("I8", 8), n, overflow)
        if overflow is not e.IntegerOverflow.NUW:
            b.op("NegI", kind, n, overflow)
    for sign in e.Signedness:
        for name in ("MaxI", "MinI", "RemI", "ShRI"):
            b.op(name, kind, n, n, sign)
        b.op("ExtI", b.type("I64", 8), n, sign)
        for predicate in e.ComparisonPredicate:
            b.op("CmpI", b.type("I1", 8), n, n, predicate, sign)
    for mode in (e.RoundingMode.ZERO, e.RoundingMode.NEGATIVE_INF, e.RoundingMode.POSITIVE_INF):
        b.op("DivI", kind, n, n, e.Signedness.Signed, mode)


@case
def conversions(b: Body) -> None:
    x, n, p = b.value("F32", 8), b.value("I32", 8), b.value("*F32", 8)
    rounding = e.RoundingMode
    for target, mode in (
        ("F16", rounding.ZERO),
        ("F64", rounding.NEAREST_AWAY),
        ("TF32", rounding.NEAREST_EVEN),
    ):
        b.op("FToF", b.type(target, 8), x, mode)
    for sign, saturating in product(e.Signedness, (False, True)):
        b.op("FToI", b.type("I32", 8), x, sign, rounding.NEAREST_INT_TO_ZERO, saturating)
        b.op("IToF", b.type("F32", 8), n, sign, rounding.NEAREST_EVEN)
    b.op("Bitcast", b.type("I32", 8), x)
    number = b.op("PtrToInt", b.type("I64", 8), p)
    b.op("IntToPtr", b.type("*F32", 8), number)
    b.op("PtrToPtr", b.type("*I32", 8), p)
    without = b.types.pointer(b.types.F32, PtrAttr.Default)
    b.op("PtrToPtr", b.types.tile(without, (8,)), p)
    b.op("Offset", b.type("*F32", 8), p, n)


@case
def shapes(b: Body) -> None:
    x, wide, i = b.value("F32", 8), b.value("F32", 8, 8), b.value("I32")
    b.op("Reshape", b.type("F32", 4, 2), x)
    b.op("Cat", b.type("F32", 16), x, x, 0)
    b.op("Permute", b.type("F32", 8, 8), wide, [1, 0])
    b.op("Select", b.type("F32", 8), b.value("I1", 8), x, x)
    b.op("Iota", b.type("I32", 8))
    part = b.op("Extract", b.type("F32", 4, 4), wide, [i, i])
    b.op("Insert", b.type("F32", 8, 8), part, wide, [i, i])
    b.op("Pack", b.type("I8", 4), b.op("Unpack", b.type("F4E2M1FN", 8), b.value("I8", 4)))


@case
def matrices(b: Body) -> None:
    left, right, total = b.value("F8E4M3FN", 16, 32), b.value("F8E4M3FN", 32, 16), b.value("F32", 16, 16)
    for fast in (False, True):
        b.op("MmaF", b.type("F32", 16, 16), left, right, total, fast)
    scales = b.value("F8E8M0FNU", 16, 1), b.value("F8E8M0FNU", 1, 16)
    b.op("MmaFScaled", b.type("F32", 16, 16), left, right, total, *scales)
    for one, other in product(e.Signedness, e.Signedness):
        integers = b.value("I8", 16, 32), b.value("I8", 32, 16), b.value("I32", 16, 16)
        b.op("MmaI", b.type("I32", 16, 16), *integers, one, other)


@case
def constants(b: Body) -> None:
    for element, numbers in (
        ("I8", (-128, 127)),
        ("I16", (-3,)),
        ("I32", (0, 5, -1)),
        ("I64", (1 << 40, -5)),
    ):
        for number, shape in product(numbers, ((), (4,))):
            content = number.to_bytes(int(element[1:]) // 8, "little", signed=True)
            b.op("Constant", b.type(element, *shape), content)
    for content in (b"\0", b"\1", b"\xff", b"\x55"):
        b.op("Constant", b.type("I1", 8), content)
    b.op("Constant", b.type("I32", 2, 2), struct.pack("<4i", 1, 2, 3, -4))
    b.op("Constant", b.type("F32", 4), struct.pack("<4f", 1, -0.0, float("nan"), float("inf")))
    for element, value in product(_FLOATS, _NUMBERS):
        if element == "F8E8M0FNU" and str(value).startswith("-"):
            continue
        bits = float_to_bits(value, SimpleType[element])
        content = bits.to_bytes((float_bit_size(SimpleType[element]) + 7) // 8, "little")
        for shape in ((), (4,)):
            b.op("Constant", b.type(element, *shape), content)
    b.op("Constant", b.type("F4E2M1FN", 8), b"\2")
    b.op("Constant", b.type("FNV8E5M3FNU", 1), b"\x22")


_FLOATS = ("F16", "BF16", "F32", "TF32", "F64", "F8E4M3FN", "F8E5M2", "F8E8M0FNU")
_NUMBERS = (
    *(0.0, -0.0, 1.0, -1.5, 0.1, 1e-30, 1e30, 3.14159274, 1.17549435e-38, 2.0**-149, 16777217.0),
    *(float("inf"), float("-inf"), float("nan")),
)


@case
def globals_(b: Body) -> None:
    section = b.writer.global_section
    section.define_global(
        "g", b.type("F32", 2), struct.pack("<2f", 1, 2), 16, True, e.SymbolVisibility.Private
    )
    section.define_global("h", b.type("I32", 1), struct.pack("<i", 7))
    b.op("GetGlobal", b.type("*F32"), "g")


@case
def assumptions(b: Body) -> None:
    n = b.value("I32", 8)
    for predicate in (
        DivBy(16),
        DivBy(16, 2, 0),
        Bounded(0, None),
        Bounded(None, 5),
        Bounded(-3, 5),
        Bounded(None, None),
    ):
        b.op("Assume", b.type("I32", 8), n, predicate)


@case
def tensor_views(b: Body) -> None:
    for index in ("I16", "I32", "I64"):
        b.tensor(index=index)
    view = b.tensor((4, 8), (8, 1))
    b.tensor((DYNAMIC, 8), (8, 1))
    b.tensor((4, 8), (DYNAMIC, DYNAMIC))
    b.tensor((), ())
    without = b.types.pointer(b.types.F32, PtrAttr.Default)
    pointer = b.op("PtrToPtr", b.types.tile(without, ()), b.value("*F32"))
    tensor = b.types.tensor_view(b.types.F32, (DYNAMIC,), (1,), PtrAttr.Default)
    b.op("MakeTensorView", tensor, pointer, [b.value("I32")], [])
    b.op("GetTensorShape", [b.type("I64")] * 2, view)


@case
def tile_views(b: Body) -> None:
    for _, view, _ in _views(b, PaddingValue):
        b.op("GetIndexSpaceShape", [b.type("I32")] * 2, view)


def _views(b: Body, paddings: Any) -> Iterator[tuple[str, Any, list[Any]]]:
    """Kind, view and an index into it."""
    tensor = b.tensor()
    kind = b.tensor_type((DYNAMIC, DYNAMIC), (DYNAMIC, 1))
    n, many = b.value("I32"), b.value("I32", 8)
    for padding, order in product(paddings, ((0, 1), (1, 0))):
        partition = b.types.partition_view((8, 4), kind, order, padding)
        yield "partition", b.op("MakePartitionView", partition, tensor), [n, n]
        strided = b.types.strided_view((8, 4), (4, 4), kind, order, padding)
        yield "strided", b.op("MakeStridedView", strided, tensor), [n, n]
    for padding in paddings:
        gather = b.types.gather_scatter_view((8, 4), kind, 0, padding)
        if padding is PaddingValue.Missing:
            yield "gather", b.op("MakeGatherScatterView", gather, tensor), [many, n]


@case
def view_memory(b: Body) -> None:
    x, token = b.value("F32", 8, 4), b.token()
    for kind, view, index in _views(b, (PaddingValue.Missing,)):
        for (order, scope), hints, waits, inside in product(ORDERS, HINTS, (None, token), (False, True)):
            flags = (inside, False)
            arguments = (index, waits, order, scope, hints, flags)
            b.op("LoadViewTko", b.type("F32", 8, 4), b.token_type, view, *arguments)
            b.op("StoreViewTko", b.token_type, x, view, *arguments)
        if kind != "gather":
            relaxed = e.MemoryOrderingSemantics.RELAXED, e.MemoryScope.DEVICE
            for waits in (None, token):
                add = e.AtomicRMWMode.ADDF
                b.op("AtomicRedViewTko", b.token_type, view, index, x, waits, *relaxed, add, (False, False))


@case
def pointer_memory(b: Body) -> None:
    p, x, mask, token = b.value("*F32", 8), b.value("F32", 8), b.value("I1", 8), b.token()
    for (order, scope), hints, waits in product(ORDERS, HINTS, (None, token)):
        for guarded, padding in ((None, None), (mask, None), (mask, x), (None, x)):
            b.op(
                "LoadPtrTko", b.type("F32", 8), b.token_type, p, guarded, padding, waits, order, scope, hints
            )
            b.op("StorePtrTko", b.token_type, p, x, guarded, waits, order, scope, hints)


@case
def atomics(b: Body) -> None:
    mask, token, n = b.value("I1", 8), b.token(), b.value("I32", 8)
    order = e.MemoryOrderingSemantics.ACQ_REL, e.MemoryScope.DEVICE
    for guarded, waits in product((None, mask), (None, token)):
        for mode in e.AtomicRMWMode:
            element = "F32" if mode is e.AtomicRMWMode.ADDF else "I32"
            pointer, value = b.value(f"*{element}", 8), b.value(element, 8)
            kinds = b.type(element, 8), b.token_type
            b.op("AtomicRMWTko", *kinds, pointer, value, guarded, waits, *order, mode)
        pointer = b.value("*I32", 8)
        b.op("AtomicCASTko", b.type("I32", 8), b.token_type, pointer, n, n, guarded, waits, *order)


@case
def order_and_output(b: Body) -> None:
    for name in ("GetTileBlockId", "GetNumTileBlocks"):
        b.op(name, *[b.type("I32")] * 3)
    token, n = b.token(), b.value("I32", 8)
    b.op("JoinTokens", b.token_type, [token, token])
    for waits in (None, token):
        b.op("GdcWaitTko", b.token_type, waits)
        b.op("GdcLaunchDependentsTko", b.token_type, waits)
        b.op("PrintTko", b.token_type, [n, b.value("I32")], waits, 'a=%d, %d "x" \\ \n é')
    b.op("PrintTko", b.token_type, [], None, "hi")
    b.op("MemoryFenceAliasTko", b.token_type, token)
    b.op("Assert", b.value("I1", 8), 'mess"age=\n%d')
    for global_ in (False, True):
        b.op("Alloca", b.type("*F32"), 16, 4, global_)


@case
def control_flow(b: Body) -> None:
    n, x, c = b.value("I32"), b.value("F32", 8), b.value("I1")
    i32, tile = b.type("I32"), b.type("F32", 8)
    loop = b.op("For", [tile, i32, b.token_type], n, n, n, [x, n, b.token()], False)
    with loop.new_block([i32, tile, i32, b.token_type]) as (i, a, k, token):
        choice = b.op("If", [], c)
        with choice.new_block([]):
            b.op("Continue", [a, k, token])
        with choice.new_block([]):
            b.op("Yield", [])
        choice.done()
        b.op("Continue", [a, i, token])
    loop.done()
    loop = b.op("For", [], n, n, n, [], True)
    with loop.new_block([i32]):
        b.op("Continue", [])
    loop.done()
    loop = b.op("Loop", [i32], [x])
    with loop.new_block([tile]) as (a,):
        choice = b.op("If", [tile, i32], c)
        with choice.new_block([]):
            b.op("Break", [n])
        with choice.new_block([]):
            b.op("Yield", [a, n])
        y, _ = choice.done()
        b.op("Continue", [y])
    loop.done()
    loop = b.op("Loop", [], [])
    with loop.new_block([]):
        b.op("Return", [])
    loop.done()


@case
def reductions(b: Body) -> None:
    x, n = b.value("F32", 8, 4), b.value("I32", 8, 4)
    for reverse in (False, True):
        scan = b.op("Scan", [b.type("F32", 8, 4)], [x], 1, reverse, [Float(1.0, SimpleType.F32, b.types)])
        with scan.new_block([b.type("F32")] * 2) as (one, other):
            nearest = e.RoundingMode.NEAREST_EVEN
            b.op("Yield", [b.op("MulF", b.type("F32"), one, other, nearest, False)])
        scan.done()
    identities = [Float(float("-inf"), SimpleType.F32, b.types), Integer(b.types.I32, 32, -5)]
    reduce = b.op("Reduce", [b.type("F32", 8), b.type("I32", 8)], [x, n], 1, identities)
    with reduce.new_block([b.type("F32")] * 2 + [b.type("I32")] * 2) as (_, other, _, index):
        b.op("Yield", [other, index])
    reduce.done()
    for element, identity in (
        ("I1", Bool(True)),
        ("I64", Integer(b.types.I64, 64, -(1 << 62))),
        ("F16", Float(-1.5, SimpleType.F16, b.types)),
    ):
        reduce = b.op("Reduce", [b.type(element)], [b.value(element, 8)], 0, [identity])
        with reduce.new_block([b.type(element)] * 2) as (one, _):
            b.op("Yield", [one])
        reduce.done()
