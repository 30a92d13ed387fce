"""One program -> one Rust function, with what the compiler must be told to make its machine code again.

The passes, in order, each on the result of the one before (`constants` has named the lengths already):

    lift       entry parameters -> arrays and scalars of the Python function, with their facts
    elements   a Rust element type for every value
    emit       one statement for each operation, in order (`ops`)
    raise      statements -> idioms: carried variables, `while` loops (`raising`)
    prune      definitions that nobody reads
    nest       one-use definitions -> nested expressions
    names      variables get the names of the Python source
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilebuild.tileir.tree import PartitionViewType
from tilebuild.translator.elements import RUST_OF_DTYPE, Elements
from tilebuild.translator.emitter import Emitter
from tilebuild.translator.helpers import Helpers
from tilebuild.translator.lift import Array, Lifted, ListLength, ListPointer, ScalarOf, lift
from tilebuild.translator.names import allocate
from tilebuild.translator.nest import nest
from tilebuild.translator.ops import OPS
from tilebuild.translator.ops.views import dims
from tilebuild.translator.ownership import own_axes
from tilebuild.translator.program import Program
from tilebuild.translator.raising import prune, raise_idioms
from tilebuild.translator.refusal import Refusal
from tilebuild.translator.rungs import Rung
from tilebuild.translator.rust.tree import (
    Block,
    Call,
    Expr,
    Function,
    Let,
    Local,
    Macro,
    Member,
    Method,
    Number,
    Parameter,
    Unsafe,
    Var,
    expressions,
    reads,
    subexpressions,
    walk,
)
from tilebuild.translator.rust.types import (
    ArrayType,
    PointerTileType,
    PointerType,
    RustType,
    ScalarType,
    TensorType,
    TokenType,
    shape_generic,
)


@dataclass
class Printed:
    """A function, the helpers it calls, and the compiler's arguments for this program."""

    function: Function
    helpers: Helpers
    arguments: dict[str, Any]
    needs_tileir: bool = False
    pointers: tuple[str, ...] = ()  # arrays that are accessed by pointer
    uses_pointers: bool = False
    written: tuple[str, ...] = ()  # the tensor parameters that are written through views
    ahead_of_time: str = ""  # why a launch cannot make the same of it
    own_axes: frozenset[int] = frozenset()  # of the grid, along which blocks keep to tiles of their own


def print_function(program: Program, rung: Rung, name: str) -> Printed:
    """Raises `Refusal` where the rung cannot express the program."""
    lifted = lift(program)
    e = Emitter(program, lifted, Elements(lifted), rung, OPS)
    parameters = _Parameters(e)
    parameters.declare()
    e.operations(program.entry.body.operations)
    body = [*parameters.prologue, *e.block]
    raise_idioms(body)
    prune(body)
    nest(body)
    prune(body)
    _mark_unread(parameters.rust, body)
    asserts = any(isinstance(s, Macro) for s in walk(body))
    function = Function(
        name,
        parameters.rust,
        body,
        attributes=_attributes(rung),
        # To rustc an assertion of cutile never returns.
        allows=("unreachable_code", "unused_variables") if asserts else (),
    )
    if rung.mutable:
        _check_safe(function, e)
    allocate(function, {name, *e.helpers.names()})
    return Printed(
        function,
        e.helpers,
        _arguments(lifted, parameters) | ({"ahead_of_time": True} if e.ahead_of_time else {}),
        e.needs_tileir,
        tuple(a.name for a in lifted.arrays if a.by_pointer),
        any(o.name in _POINTER_OPERATIONS for o in program.entry.walk()),
        tuple(local.name for array, local in parameters.tensors.items() if array.stored),
        e.ahead_of_time,
        own_axes(lifted),
    )


#: Operations that no tile view covers: where one occurs, pointers are accessed.
_POINTER_OPERATIONS = frozenset(
    {"offset", "int_to_ptr", "load_ptr_tko", "store_ptr_tko", "atomic_rmw_tko", "atomic_cas_tko"}
)


#: For the author of a kernel of which a step is not safe.
_OTHER_STYLE = "accept the style `typed`, or write this step with other operations of cuda.tile"


def _check_safe(function: Function, e: Emitter) -> None:
    """A safe kernel holds no unsafe code, in its body or in what it calls."""
    for statement in walk(function.body):
        for expression in expressions(statement):
            if any(isinstance(part, Unsafe) for part in subexpressions(expression)):
                raise Refusal("this step has no safe Rust form", _OTHER_STYLE, statement.location)
    unsafe = [name for name, text in e.helpers.items() if "unsafe" in text or "cuda_tile::" in text]
    if unsafe:
        raise Refusal(f"the helper {unsafe[0]} is not safe code of cutile's own functions", _OTHER_STYLE)


def _mark_unread(parameters: list[Parameter], body: Block) -> None:
    """Parameters that nobody reads say so, as rustc wants it."""
    read = {local for statement in walk(body) for local in reads(statement)}
    for parameter in parameters:
        if parameter.local not in read:
            parameter.local.prefix = "_"


def _attributes(rung: Rung) -> tuple[str, ...]:
    return ("deny_in_kernel_checks",) if rung.checked else ("unchecked_accesses",)


class _Parameters:
    """The Rust parameters, and what the first lines of the function make of them."""

    def __init__(self, e: Emitter) -> None:
        self.e = e
        self.rust: list[Parameter] = []
        self.prologue: list[Any] = []
        self.tensors: dict[Array, Local] = {}

    def declare(self) -> None:
        token = Local("token", python=True)
        self.e.set_root_token(Var(token))
        arrays = {a.name: a for a in self.e.lifted.arrays}
        for parameter in self.e.program.parameters:
            if parameter.kind == "array":
                array = arrays[parameter.name]
                self._tensor(array) if self.e.rung.tensors else self._raw(array)
            elif parameter.kind == "scalar":
                self._scalars(ScalarOf(parameter), parameter.name)
            elif parameter.kind == "list":
                self._scalars(ListPointer(parameter), parameter.name)
                self._scalars(ListLength(parameter), f"{parameter.name}_len")
        self._let(token, TokenType(), Call("new_token_unordered", ()))

    def _let(self, local: Local, kind: RustType, value: Expr, *, infers: bool = False) -> Expr:
        self.prologue.append(Let(local, kind, value, infers=infers))
        return Var(local)

    def _add(self, name: str, kind: RustType) -> Local:
        local = Local(name, python=True)
        self.rust.append(Parameter(local, kind))
        return local

    # Tensors

    def _tensor(self, array: Array) -> None:
        lengths, _ = extents(array)
        kind = TensorType(RUST_OF_DTYPE[array.parameter.dtype], lengths, "&")
        if self.e.rung.mutable and array.stored:
            kind = TensorType(kind.element, self._output_tile(array), "&mut ")
        local = self._add(array.name, kind)
        if array.parameter.index_dtype != "int32":
            raise Refusal(
                f"{array.name!r} is indexed with {array.parameter.index_dtype}; lengths of a &Tensor are i32",
                "declare the array with index_dtype int32 where its extents allow it",
            )
        self.e.declare_tensor(array, local)
        self.tensors[array] = local
        self._lengths(array, local, lengths)
        if array.by_pointer:
            self._pointer_into(array, local, kind.element)

    def _output_tile(self, array: Array) -> tuple[int, ...]:
        """The tile that a safe kernel stores into this output."""
        lifted = self.e.lifted
        stores = [
            o for o in lifted.program.entry.walk() for v in o.group("view") if lifted.behind.get(v) is array
        ]
        arrays = [p for p in lifted.program.parameters if p.kind != "constant"]
        if array.loaded or len(stores) != 1 or any(self._is_read(v) for v in array.lengths):
            raise Refusal(
                f"{array.name!r} is more than an output that is stored once, which a safe kernel needs",
                "read from one array and store into another, once",
            )
        if array.rank > 3 or arrays[-1] is not array.parameter:
            raise Refusal(
                f"{array.name!r} is not the last parameter or has more than three axes: no safe output",
                "make the output the last array of the kernel, with three axes at most",
            )
        view = lifted.program.entry.types[stores[0].group("view")[0]]
        if not isinstance(view, PartitionViewType) or view.dim_map != tuple(range(array.rank)):
            raise Refusal(
                f"{array.name!r} is stored through a permuted or strided view, which is no safe output",
                "permute the tile, with ct.permute, not the view",
            )
        return view.tile

    def _lengths(self, array: Array, local: Local, lengths: tuple[int, ...]) -> None:
        used = [a for a, v in enumerate(array.lengths) if self._is_read(v)]
        source: Expr = Method(Var(local), "shape", ())
        if used and any(n != -1 for n in lengths):
            # `shape()` counts the run-time lengths only; the tensor's own shape has them all.
            kind = ArrayType(f"[i32; {array.rank}]")
            call = Call("get_tensor_shape", (Var(local),))
            source = self._let(Local(f"{array.name}_dims"), kind, call)
        for axis, value in enumerate(array.lengths):
            fixed = lengths[axis]
            if fixed != -1:
                self._bind(value, Number(str(fixed), "i32"))
            elif axis in used:
                self._bind(value, Member(source, axis, bracket=True))

    def _pointer_into(self, array: Array, local: Local, element: str) -> None:
        kind = PointerTileType(element, ())
        pointer = Call("pointer_to_tile", (Call("cast_mut", (Method(Var(local), "as_ptr", ()),)),))
        self.e.declare_pointer(array, self._let(Local(f"{array.name}_pointer"), kind, pointer))
        _, strides = extents(array)
        used = [a for a, v in enumerate(array.strides) if self._is_read(v)]
        if not used:
            return
        words = "_".join("n" if n == -1 else str(n) for n in strides)
        function = self.e.helpers.strides(len(strides), shape_generic(strides), f"strides_{words}")
        generic = ArrayType(f"Shape<{shape_generic(strides)}>")
        source = self._let(Local(f"{array.name}_strides"), generic, Call(function, (Var(local),)))
        dynamic = [a for a, n in enumerate(strides) if n == -1]
        for axis in used:
            if axis in dynamic:
                self._bind(array.strides[axis], Member(source, dynamic.index(axis), bracket=True))
            else:
                self._bind(array.strides[axis], Number(str(strides[axis]), "i32"))

    def _is_read(self, value: int) -> bool:
        """Whether anything but a view of the whole array reads a parameter."""
        lifted = self.e.lifted
        same = [v for v, root in lifted.root.items() if root == value]
        return any(
            not (user.name == "assume" and user.results[0] in lifted.root)
            and not (user.name == "make_tensor_view" and user.results[0] in lifted.views)
            for v in same
            for user in self.e.uses.get(v, [])
        )

    # Pointers and scalars

    def _raw(self, array: Array) -> None:
        element = RUST_OF_DTYPE[array.parameter.dtype]
        index = RUST_OF_DTYPE[array.parameter.index_dtype]
        pointer = self._add(array.name, PointerType(element))
        kind = PointerTileType(element, ())
        known = self._facts(array.pointer, Var(pointer), array.name, PointerType(element))
        tile = Call("pointer_to_tile", (known,))
        self.e.declare_pointer(array, self._let(Local(f"{array.name}_pointer"), kind, tile))
        for word, values in (("len", array.lengths), ("stride", array.strides)):
            for axis, value in enumerate(values):
                name = f"{array.name}_{word}{axis}"
                local = self._add(name, ScalarType(index))
                self._bind(value, self._facts(value, Var(local), name, ScalarType(index)))

    def _facts(self, root: int, expression: Expr, name: str, kind: RustType) -> Expr:
        """The parameter with what Python assumes of it."""
        facts = self.e.lifted.facts[root]
        changed = expression
        if facts.bounded:
            changed = Call("assume_bounds_lower::<_, 0>", (changed,))
        if facts.divisor > 1:
            changed = Call(f"assume_div_by::<_, {facts.divisor}>", (changed,))
        if changed is expression:
            return expression
        return self._let(Local(name), kind, Unsafe(changed, "the launch guarantees it."), infers=True)

    def _scalars(self, origin: ScalarOf | ListPointer | ListLength, name: str) -> None:
        (value,) = (v for v, o in self.e.lifted.origin.items() if o == origin and self.e.lifted.root[v] == v)
        if isinstance(origin, ListPointer):
            local = self._add(name, PointerType("i64"))
            kind = PointerTileType("i64", ())
            tile = self._let(Local(f"{name}_pointer"), kind, Call("pointer_to_tile", (Var(local),)))
            self._bind(value, self._facts(value, tile, f"{name}_pointer", kind))
            return
        element = RUST_OF_DTYPE[origin.parameter.dtype] if isinstance(origin, ScalarOf) else "i32"
        local = self._add(name, ScalarType(element))
        self._bind(value, self._facts(value, Var(local), name, ScalarType(element)))

    def _bind(self, value: int, expression: Expr) -> None:
        self.e.bind(value, expression)


def extents(array: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Lengths and strides of an array as its view types them, else as the signature does; -1 where known at
    run time only."""
    lengths = array.view.shape if array.view else array.parameter.lengths or (None,) * array.rank
    # For strides the signature knows more: the view of an axis of length 1 has a run-time stride that is 1.
    strides = array.parameter.strides or (array.view.strides if array.view else (None,) * array.rank)
    return dims(lengths), dims(strides)


def _arguments(lifted: Lifted, parameters: _Parameters) -> dict[str, Any]:
    """What the compiler is told beside the source: strides and divisors of tensors, and hints."""
    strides: dict[str, list[int]] = {}
    spec: dict[str, dict[str, Any]] = {}
    for array, local in parameters.tensors.items():
        fixed_lengths, fixed_strides = extents(array)
        strides[local.name] = list(fixed_strides)
        # Divisors are listed for the dimensions known at run time only, in their order.
        spec[local.name] = {
            "shape_div": [
                lifted.facts[v].divisor for v, n in zip(array.lengths, fixed_lengths, strict=True) if n == -1
            ],
            "stride_div": [
                lifted.facts[v].divisor for v, n in zip(array.strides, fixed_strides, strict=True) if n == -1
            ],
            "stride_one": [n == 1 for n in fixed_strides],
            "base_ptr_div": lifted.facts[array.pointer].divisor,
            "elements_disjoint": array.parameter.disjoint,
        }
    options: Mapping[str, int] = {k: v for k, v in lifted.program.hints.items() if k != "opt_level"}
    return {"strides": strides, "spec_args": spec, "options": dict(options)}
