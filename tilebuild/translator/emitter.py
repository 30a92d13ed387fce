"""Tile IR operations -> Rust statements, one operation at a time, in their order. What each operation
becomes is in `ops`.

The emitter holds what the rows of `ops` need: which Rust expression stands for a value, where the next
statement goes, which helper functions are used. Values of rank 0 are plain Rust scalars throughout; all
others are tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from tilebuild.tileir import tree as ir
from tilebuild.translator.constants import generic_constants
from tilebuild.translator.elements import Elements
from tilebuild.translator.helpers import Helpers
from tilebuild.translator.idioms import FloorMod, floor_mods
from tilebuild.translator.lift import Array, Lifted, Pointer
from tilebuild.translator.names import snake
from tilebuild.translator.program import Program, uses
from tilebuild.translator.refusal import Refusal
from tilebuild.translator.rungs import Rung
from tilebuild.translator.rust.tree import (
    Block,
    Expr,
    If,
    Let,
    LetTuple,
    Local,
    Number,
    Path,
    Statement,
    Var,
)
from tilebuild.translator.rust.types import (
    PointerTileType,
    RustType,
    ScalarType,
    TileType,
    TokenType,
    TupleType,
)
from tilebuild.translator.tokens import implicit_arrays, root_tokens


class Attributes:
    """The attributes of one operation. What is not taken is not understood, and refused."""

    def __init__(self, operation: ir.Operation) -> None:
        self._left = dict(operation.attributes)
        self._name = operation.name

    def word(self, name: str, default: str = "") -> str:
        return str(self._left.pop(name, default))

    def flag(self, name: str) -> bool:
        return bool(self._left.pop(name, False))

    def number(self, name: str, default: int = 0) -> int:
        value = self._left.pop(name, default)
        assert isinstance(value, int)
        return value

    def numbers(self, name: str) -> tuple[int, ...]:
        value = self._left.pop(name, ())
        assert isinstance(value, tuple)
        return tuple(v for v in value if isinstance(v, int))

    def any(self, name: str) -> ir.AttributeValue | None:
        return self._left.pop(name, None)

    def finish(self) -> None:
        if self._left:
            listed = ", ".join(f"{k} = {v}" for k, v in sorted(self._left.items()))
            raise Refusal(
                f"{self._name} with {listed} has no Rust form", f"leave {', '.join(sorted(self._left))} out"
            )


Row: TypeAlias = Callable[["Emitter", ir.Operation, Attributes], None]


@dataclass
class Scope:
    """What one Rust block knows of its own: tile views that were made in it."""

    views: dict[object, Expr] = field(default_factory=dict)


@dataclass
class LoopContext:
    """Where the values of `continue` and `break` go; None for what needs no variable of its own."""

    kind: str
    carried: tuple[Local | None, ...]
    results: tuple[Local | None, ...]


def hint_of(expression: Expr) -> str:
    return expression.local.hint if isinstance(expression, Var) else "value"


#: What a branch yields, for the statements that follow it inside of it.
_GIVES = "gives"


def _returns(operation: ir.Operation) -> bool:
    """Whether a branch ends the kernel, be it deep inside."""
    return any(
        o.name == "return" or (o.name == "if" and _returns(o))
        for r in operation.regions
        for o in r.operations
    )


class Emitter:
    def __init__(
        self, program: Program, lifted: Lifted, elements: Elements, rung: Rung, rows: Mapping[str, Row]
    ) -> None:
        self.program = program
        self.lifted = lifted
        self.elements = elements
        self.rung = rung
        self.helpers = Helpers()
        self.constants: Mapping[str, int] = generic_constants(program.parameters) if program.named else {}
        self.notes: list[str] = []
        self.ahead_of_time = ""  # why the text needs a step that a launch does not take
        self.unchecked = False  # whether the text itself needs `unchecked_accesses`
        self.uses = uses(program.entry)
        self.unshaped: set[ir.Value] = set()  # tiles that still stand as the scalar they are made of
        self.spread_pointers: dict[ir.Value, ir.Value] = {}  # by the pointer of rank 0 that they repeat
        #: Constants that no literal gives, until they are broadcast to their shape: number and bits.
        self.deferred: dict[ir.Value, tuple[bool | int | float, int | None]] = {}
        self.scopes: list[Scope] = [Scope()]
        self.block: Block = []
        self.implicit = implicit_arrays(lifted) if rung.tensors else set()
        self.root_tokens = root_tokens(lifted)
        self.needs_tileir = False  # whether the views of `cutile::tileir` are used
        self.block_ids: dict[ir.Value, int] = {}  # axis of the grid
        self.loops: list[LoopContext] = []
        self.loop_depths: list[int] = []
        self._tensors: dict[Array, Local] = {}
        self._pointers: dict[Array, Expr] = {}
        self._root_token: Expr | None = None
        self._view_types: dict[Local, RustType] = {}
        self._rows = rows
        self._locations = program.location_of()
        self._location: ir.Location | None = None
        self._bound: dict[ir.Value, Expr] = {}
        self.floor_mods = floor_mods(program.entry)
        self._skipped = {
            id(part)
            for match in self.floor_mods.values()
            if self._is_plain_number(match.dividend)
            for part in match.parts
        }

    # Values

    def type(self, value: ir.Value) -> ir.Type:
        return self.program.entry.types[value]

    def tile(self, value: ir.Value) -> ir.TileType:
        kind = self.type(value)
        assert isinstance(kind, ir.TileType)
        return kind

    def shape(self, value: ir.Value) -> tuple[int, ...]:
        return self.tile(value).shape

    def element(self, value: ir.Value) -> str:
        return self.elements.of(value)

    def is_scalar(self, value: ir.Value) -> bool:
        """Whether the value is a plain Rust scalar."""
        kind = self.type(value)
        return isinstance(kind, ir.TileType) and not kind.shape and isinstance(kind.element, ir.Scalar)

    def rust_type(self, value: ir.Value) -> RustType:
        kind = self.type(value)
        if isinstance(kind, ir.TokenType):
            return TokenType()
        if not isinstance(kind, ir.TileType):
            raise Refusal(
                "a view cannot be carried through a loop or an `if`",
                "make the view where it is used: pass the array and its indices on instead",
            )
        if isinstance(kind.element, ir.Pointer):
            return PointerTileType(self.element(value), kind.shape)
        if not kind.shape:
            return ScalarType(self.element(value))
        return TileType(self.element(value), kind.shape)

    def value(self, value: ir.Value) -> Expr:
        return self._bound[value]

    def is_bound(self, value: ir.Value) -> bool:
        return value in self._bound

    def bind(self, value: ir.Value, expression: Expr) -> None:
        self._bound[value] = expression

    # Statements

    def emit(self, statement: Statement) -> None:
        statement.location = statement.location or self._location
        self.block.append(statement)

    def local(self, value: ir.Value, fallback: str) -> Local:
        """A variable for a value, named as in the Python source where it has a name there."""
        name = self.program.name(value)
        return Local(name or fallback, bool(name))

    def let(self, value: ir.Value, expression: Expr, fallback: str, *, infers: bool = False) -> Local:
        local = self.local(value, fallback)
        self.emit(Let(local, self.rust_type(value), expression, infers=infers))
        self.bind(value, Var(local))
        return local

    def temporary(self, name: str, kind: RustType, expression: Expr, *, infers: bool = False) -> Expr:
        """A variable that stands for no value of the IR."""
        local = Local(name)
        self.emit(Let(local, kind, expression, infers=infers))
        return Var(local)

    @contextmanager
    def inside(self) -> Iterator[Block]:
        """Statements emitted meanwhile go into a block of their own."""
        outer, self.block = self.block, []
        self.scopes.append(Scope())
        try:
            yield self.block
        finally:
            self.block = outer
            self.scopes.pop()

    @contextmanager
    def loop(self, context: LoopContext) -> Iterator[None]:
        """Statements emitted meanwhile are in the body of this loop, whose block is the current one."""
        self.loops.append(context)
        self.loop_depths.append(len(self.scopes))
        try:
            yield
        finally:
            self.loops.pop()
            self.loop_depths.pop()

    def let_pair(self, tile: ir.Value, token: ir.Value, call: Expr, fallback: str, token_word: str) -> None:
        """`let (x, loaded): (Tile<…>, Token) = call;`"""
        value = self.local(tile, fallback)
        loaded = self.local(token, token_word) if token in self.uses else None
        kinds = TupleType((self.rust_type(tile), TokenType()))
        self.emit(LetTuple((value, loaded), kinds, call))
        self.bind(tile, Var(value))
        if loaded is not None:
            self.bind(token, Var(loaded))

    def named(self, value: ir.Value) -> Expr:
        """The value as an argument of a function of whose arguments cutile infers no types."""
        expression = self.value(value)
        if isinstance(expression, Var | Number | Path):
            return expression
        return self.temporary("operand", self.rust_type(value), expression)

    def saved(self, value: ir.Value, expression: Expr, ready: list[tuple[Local, Expr]]) -> Expr:
        """A variable that holds the expression from before the assignments in `ready`."""
        local = Local(f"previous_{hint_of(expression)}")
        self.emit(Let(local, self.rust_type(value), expression))
        return Var(local)

    # Parameters, views, tokens

    def declare_tensor(self, array: Array, local: Local) -> None:
        self._tensors[array] = local

    def tensor(self, array: Array) -> Local | None:
        """The parameter `&Tensor` of an array, if it has one."""
        return self._tensors.get(array)

    def declare_pointer(self, array: Array, pointer: Expr) -> None:
        self._pointers[array] = pointer

    def pointer_tile(self, value: ir.Value) -> Expr:
        """A pointer as a tile of rank 0 or more."""
        origin = self.lifted.origin.get(value)
        return self._pointers[origin.array] if isinstance(origin, Pointer) else self.value(value)

    def root_token(self) -> Expr:
        """A token that stands for the start of the kernel."""
        assert self._root_token is not None
        return self._root_token

    def set_root_token(self, token: Expr) -> None:
        self._root_token = token

    def known_view(self, key: object) -> Expr | None:
        """A view with this key that an enclosing block has made."""
        return next((scope.views[key] for scope in reversed(self.scopes) if key in scope.views), None)

    def view_name(self, view: ir.Value) -> str:
        """A word for what is seen through a view: the name of the array."""
        array = self.lifted.behind.get(view)
        return snake(array.name) if array is not None else snake(self.program.name(view)) or "view"

    def padding_for(self, op: ir.Operation) -> str:
        """The padding of a tile view. One of which only the number of tiles is asked borrows that of
        another view."""
        view = self.type(op.results[0])
        assert isinstance(view, ir.PartitionViewType)
        users = self.uses.get(op.results[0], [])
        if not self.rung.tensors or any(u.name != "get_index_space_shape" for u in users):
            return view.padding
        paddings = [
            other.padding
            for value, loads in self.uses.items()
            if isinstance(other := self.type(value), ir.PartitionViewType)
            and (other.tile, other.dim_map) == (view.tile, view.dim_map)
            and self.lifted.behind.get(value) is self.lifted.behind.get(op.results[0]) is not None
            and any(u.name == "load_view_tko" for u in loads)
        ]
        return paddings[0] if paddings else view.padding

    def hints(self, attribute: ir.AttributeValue | None) -> dict[str, int | bool]:
        """The hints of one access that hold for the target."""
        if attribute is None:
            return {}
        assert isinstance(attribute, Mapping)
        found: dict[str, int | bool] = {}
        for key in ("default", self.program.target):
            hints = attribute.get(key, {})
            assert isinstance(hints, Mapping)
            found |= {k: v for k, v in hints.items() if isinstance(v, int)}
        return found

    # Operations

    def _is_plain_number(self, value: ir.Value) -> bool:
        return self.is_scalar(value) and self.element(value) == "i32"

    def floor_mod(self, select: ir.Operation) -> FloorMod | None:
        """The idiom that a `select` ends, if it is printed as a call."""
        match = self.floor_mods.get(id(select))
        return match if match is not None and self._is_plain_number(match.dividend) else None

    def operations(self, operations: tuple[ir.Operation, ...]) -> None:
        for index, operation in enumerate(operations):
            if operation.name == "if" and not self.loops and _returns(operation):
                self._early_return(operation, operations[index + 1 :])
                return
            if operation.name == _GIVES:
                for value, result in zip(operation.operands, operation.results, strict=True):
                    self.bind(result, self.value(value))
            else:
                self.operation(operation)

    def _early_return(self, operation: ir.Operation, rest: tuple[ir.Operation, ...]) -> None:
        """`if c { return } …` becomes `if c { } else { … }`: cutile has no return but at the end."""
        condition = self.value(operation.operands[0])
        blocks: list[Block] = []
        for region in (*operation.regions, *[ir.Block((), ())] * (2 - len(operation.regions))):
            *inner, end = region.operations or (ir.Operation("yield", (), ()),)
            with self.inside() as block:
                if end.name == "return":
                    self.operations(tuple(inner))
                else:
                    given = ir.Operation(_GIVES, end.operands, operation.results)
                    self.operations((*inner, given, *rest))
            blocks.append(block)
        self.emit(If(condition, blocks[0], blocks[1], self.location_of(operation)))

    def operation(self, operation: ir.Operation) -> None:
        if id(operation) in self._skipped:
            return
        outer, self._location = self._location, self._locations[id(operation)]
        row = self._rows.get(operation.name)
        try:
            if row is None:
                raise Refusal(
                    f"the operation {operation.name} cannot be translated to cutile 0.5.0",
                    "write this step with other operations of cuda.tile",
                )
            attributes = Attributes(operation)
            row(self, operation, attributes)
            attributes.finish()
        except Refusal as refusal:
            raise refusal.at(self._location) from None
        finally:
            self._location = outer

    def location_of(self, operation: ir.Operation) -> ir.Location | None:
        return self._locations[id(operation)]
