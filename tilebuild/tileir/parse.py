"""The disassembler's text of a Tile IR module, as a tree. Knows no compiler and no file.

`parse(text)` reads what `tileirdisasm` of the pinned version prints, with or without `-g`. An operation or
attribute that is not in the table of `operations` is refused by name, with its line. What the text leaves
out is filled in: default attributes, and the `yield` or `continue` without operands that ends a block, so
that the operations of the tree are those of the byte code, one for one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tilebuild.tileir.lexer import Cursor
from tilebuild.tileir.locations import LocationTable
from tilebuild.tileir.operations import (
    ENDS,
    IMPLIED_END,
    RESULT_TYPE,
    SYNTAX,
    Bracketed,
    Flag,
    Literal,
    Numbers,
    Operand,
    Part,
    Special,
    Syntax,
    Text,
    Word,
)
from tilebuild.tileir.parse_constant import Number, read_constant, read_number
from tilebuild.tileir.parse_type import read_type
from tilebuild.tileir.tree import (
    AttributeValue,
    Block,
    Entry,
    Global,
    Location,
    Operation,
    Scalar,
    TileType,
    TokenType,
    Type,
    Value,
)

Hints = Mapping[str, Mapping[str, "int | bool"]]


def parse(text: str, name: str = "kernel.tileir") -> Entry:
    """The one entry of a module. Raises `DiagnosticError` with the line of `name` that cannot be read."""
    return _Parser(text, name).module()


@dataclass
class _Pending:
    """An operation while it is read."""

    attributes: dict[str, AttributeValue] = field(default_factory=dict)
    operands: list[Value] = field(default_factory=list)
    segments: dict[str, int] = field(default_factory=dict)
    regions: list[Block] = field(default_factory=list)

    def add(self, group: str, values: tuple[Value, ...]) -> None:
        self.operands += values
        self.segments[group] = len(values)


class _Parser:
    def __init__(self, text: str, name: str) -> None:
        body, _, table = text.partition("\n#")
        self._cursor = Cursor(body, name)
        self._locations = LocationTable("#" + table)
        self._types: list[Type] = []
        self._scope: dict[str, Value] = {}

    # Module

    def module(self) -> Entry:
        cursor = self._cursor
        constants: list[Global] = []
        while cursor.accept("global"):
            constants.append(self._global())
        cursor.expect("entry")
        symbol = cursor.symbol()
        cursor.expect("(")
        parameters = self._arguments(")")
        hints = self._hints()
        cursor.expect("{")
        body = self._block((), "")
        self._location()
        if cursor.peek():
            raise cursor.error(f"expected the end of the module, found {cursor.peek()!r}")
        return Entry(symbol, parameters, body, tuple(self._types), hints, tuple(constants))

    def _global(self) -> Global:
        cursor = self._cursor
        private, constant = cursor.accept("private"), cursor.accept("constant")
        symbol = cursor.symbol()
        alignment = 0
        if cursor.accept("alignment"):
            cursor.expect("=")
            alignment = cursor.integer()
        content = read_constant(cursor)
        cursor.expect(":")
        tile = read_type(self._cursor)
        self._location()
        return Global(symbol, tile, content, alignment, constant, private)

    def _arguments(self, end: str) -> tuple[Value, ...]:
        """`%a: type, %b: type`; defines them in the current scope."""

        def argument() -> Value:
            name = self._cursor.take()
            self._cursor.expect(":")
            kind = read_type(self._cursor)
            self._location()
            return self._define(name, kind)

        return self._cursor.separated(argument, end)

    # Blocks and operations

    def _block(self, arguments: tuple[Value, ...], owner: str) -> Block:
        """The operations up to and including `}`; names defined inside end with it."""
        outer = dict(self._scope)
        operations: list[Operation] = []
        while not self._cursor.accept("}"):
            operations.append(self._operation())
        if not operations or operations[-1].name not in ENDS:
            if owner not in IMPLIED_END:
                raise self._cursor.error("a block ends without yield, continue, break or return")
            operations.append(Operation(IMPLIED_END[owner], (), (), segments={"operands": 0}))
        self._scope = outer
        return Block(arguments, tuple(operations))

    def _operation(self) -> Operation:
        names = self._result_names()
        name = self._cursor.peek()
        if name not in SYNTAX and name not in _REGIONS:
            raise self._cursor.error(f"unknown operation {name!r}")
        self._cursor.take()
        pending = _Pending()
        kinds = self._read(name, pending)
        location = self._location()
        if len(kinds) == 1 < len(names):
            kinds *= len(names)  # one type for all results: get_tile_block_id, get_index_space_shape
        if len(kinds) != len(names):
            raise self._cursor.error(f"{name} has {len(names)} results and {len(kinds)} result types")
        results = tuple(self._define(n, k) for n, k in zip(names, kinds, strict=True))
        return Operation(
            name,
            tuple(pending.operands),
            results,
            pending.attributes,
            pending.segments,
            tuple(pending.regions),
            location,
        )

    def _read(self, name: str, pending: _Pending) -> tuple[Type, ...]:
        """Reads an operation behind its name; returns the types of its results."""
        if name in _REGIONS:
            return _REGIONS[name](self, pending)
        for element in SYNTAX[name]:
            self._element(element, pending)
        if name == "load_ptr_tko":
            self._tell_mask_from_padding(pending)
        if name in ENDS or name == "assert":
            self._trailing_types()
            return ()
        if name == "memory_fence_alias_tko":
            return (TokenType(),)
        return self._result_types(name)

    def _tell_mask_from_padding(self, pending: _Pending) -> None:
        """The text of a load with padding and no mask looks like one with a mask; their types differ."""
        if "mask" in pending.segments and "padding_value" not in pending.segments:
            kind = self._types[pending.operands[1]]
            if isinstance(kind, TileType) and kind.element != Scalar("i1"):
                renamed = {"mask": "padding_value"}
                pending.segments = {renamed.get(k, k): n for k, n in pending.segments.items()}

    def _result_names(self) -> list[str]:
        """`%a, %b =` or `%a:2 =`; empty for an operation without results."""
        cursor = self._cursor
        names: list[str] = []
        while cursor.peek().startswith("%"):
            name = cursor.take()
            if cursor.accept(":"):
                names += [f"{name}#{i}" for i in range(cursor.integer())]
            else:
                names.append(name)
            if not cursor.accept(","):
                cursor.expect("=")
        return names

    def _result_types(self, name: str) -> tuple[Type, ...]:
        listed = self._trailing_types()
        if self._cursor.accept("->"):
            return self._types_list()
        if not listed:
            raise self._cursor.error(f"{name} has no type")
        return (listed[RESULT_TYPE.get(name, -1)],)

    def _trailing_types(self) -> tuple[Type, ...]:
        return self._types_list() if self._cursor.accept(":") else ()

    def _types_list(self) -> tuple[Type, ...]:
        kinds = [read_type(self._cursor)]
        while self._cursor.accept(","):
            kinds.append(read_type(self._cursor))
        return tuple(kinds)

    def _location(self) -> Location | None:
        cursor = self._cursor
        if not cursor.accept("loc"):
            return None
        cursor.expect("(")
        depth, words = 1, [""]
        while depth:
            word = cursor.take()
            if not word:
                raise cursor.error("a location does not end")
            depth += {"(": 1, ")": -1}.get(word, 0)
            words.append(f" {word} " if word == "at" else word)
        return self._locations.resolve("".join(words[:-1]))

    # Values

    def _define(self, name: str, kind: Type) -> Value:
        self._types.append(kind)
        self._scope[name] = len(self._types) - 1
        return self._scope[name]

    def _value(self) -> Value:
        name = self._cursor.peek()
        if name not in self._scope:
            raise self._cursor.error(f"expected a value, found {name!r}")
        self._cursor.take()
        return self._scope[name]

    def _values(self) -> tuple[Value, ...]:
        """Values separated by commas; maybe none. A comma that no value follows is left alone."""
        values: list[Value] = []
        while self._cursor.peek().startswith("%"):
            values.append(self._value())
            if not (self._cursor.peek() == "," and self._cursor.peek(1).startswith("%")):
                break
            self._cursor.take()
        return tuple(values)

    # Syntax elements

    def _element(self, element: Syntax, pending: _Pending) -> None:
        cursor = self._cursor
        match element:
            case Literal(text):
                cursor.expect(text)
            case Operand(group, many):
                pending.add(group, self._values() if many else (self._value(),))
            case Word(attribute, choices):
                if not choices or cursor.peek() in choices:
                    pending.attributes[attribute] = cursor.take()
            case Bracketed(attribute, default):
                pending.attributes[attribute] = self._bracketed(attribute, default)
            case Flag(attribute):
                if cursor.accept(attribute):
                    pending.attributes[attribute] = True
            case Numbers(attribute, many):
                pending.attributes[attribute] = self._integers() if many else cursor.integer()
            case Text(attribute):
                pending.attributes[attribute] = cursor.string()
            case Part(parts):
                if self._begins(parts):
                    for part in parts:
                        self._element(part, pending)
            case Special(form, name):
                _SPECIAL[form](self, pending, name)

    def _begins(self, parts: tuple[Syntax, ...]) -> bool:
        return isinstance(parts[0], Literal) and self._cursor.peek() == parts[0].text

    def _bracketed(self, attribute: str, default: str) -> str:
        if not (self._cursor.peek() == attribute and self._cursor.peek(1) == "<"):
            return default
        self._cursor.take()
        self._cursor.take()
        word = self._cursor.take()
        self._cursor.expect(">")
        return word

    def _integers(self) -> tuple[int, ...]:
        values = [self._cursor.integer()]
        while self._cursor.accept(","):
            values.append(self._cursor.integer())
        return tuple(values)

    # Special forms

    def _hints_form(self, pending: _Pending, name: str) -> None:
        if self._cursor.peek() == name:
            pending.attributes[name] = self._hints()

    def _hints(self) -> Hints:
        cursor = self._cursor
        if not cursor.accept("optimization_hints"):
            return {}
        cursor.expect("=")
        cursor.expect("<")

        def hint() -> tuple[str, int | bool]:
            key = cursor.take()
            cursor.expect("=")
            return key, cursor.boolean() if cursor.peek() in ("true", "false") else cursor.integer()

        def target() -> tuple[str, Mapping[str, int | bool]]:
            key = cursor.take()
            cursor.expect("=")
            cursor.expect("{")
            return key, dict(cursor.separated(hint, "}"))

        return dict(cursor.separated(target, ">"))

    def _booleans(self, pending: _Pending, name: str) -> None:
        if self._cursor.accept(name):
            self._cursor.expect("=")
            self._cursor.expect("[")
            pending.attributes[name] = self._cursor.separated(self._cursor.boolean, "]")

    def _symbol(self, pending: _Pending, name: str) -> None:
        pending.attributes[name] = self._cursor.symbol()

    def _predicate(self, pending: _Pending, name: str) -> None:
        cursor = self._cursor
        kind = cursor.take()
        pending.attributes[name] = kind
        cursor.expect("<")
        if kind == "div_by":
            pending.attributes["divisor"] = cursor.integer()
            if cursor.accept(","):
                cursor.expect("every")
                pending.attributes["every"] = cursor.integer()
                cursor.expect("along")
                pending.attributes["along"] = cursor.integer()
        elif kind == "bounded":
            self._bound(pending, "lower")
            cursor.expect(",")
            self._bound(pending, "upper")
        elif kind == "same_elements":
            cursor.expect("[")
            pending.attributes["values"] = cursor.separated(cursor.integer, "]")
        else:
            raise cursor.error(f"unknown assumption {kind!r}")
        cursor.expect(">")

    def _bound(self, pending: _Pending, name: str) -> None:
        if not self._cursor.accept("?"):
            pending.attributes[name] = self._cursor.integer()

    def _extents(self, pending: _Pending, name: str) -> None:
        """`[%n, 8]`: the values only; the type says which extents are constant."""
        cursor = self._cursor
        cursor.expect("[")

        def extent() -> Value | None:
            if cursor.peek().startswith("%"):
                return self._value()
            cursor.integer()
            return None

        extents = cursor.separated(extent, "]")
        pending.add(name, tuple(e for e in extents if e is not None))

    def _constant(self, pending: _Pending, _: str) -> None:
        pending.attributes |= read_constant(self._cursor)

    # Operations with regions

    def _for(self, pending: _Pending) -> tuple[Type, ...]:
        cursor = self._cursor
        if cursor.accept("unsigned"):
            pending.attributes["unsigned"] = True
        induction = cursor.take()
        cursor.expect("in")
        cursor.expect("(")
        pending.add("lower", (self._value(),))
        cursor.expect("to")
        pending.add("upper", (self._value(),))
        cursor.expect(",")
        cursor.expect("step")
        pending.add("step", (self._value(),))
        cursor.expect(")")
        cursor.expect(":")
        index_type = read_type(self._cursor)
        names = self._carried(pending)
        kinds: tuple[Type, ...] = ()
        if cursor.accept("->"):
            cursor.expect("(")
            kinds = cursor.separated(lambda: read_type(cursor), ")")
        self._region(pending, "for", [(induction, index_type), *zip(names, kinds, strict=True)])
        return kinds

    def _loop(self, pending: _Pending) -> tuple[Type, ...]:
        names = self._carried(pending)
        kinds = self._trailing_types()
        results = self._types_list() if self._cursor.accept("->") else ()
        self._region(pending, "loop", list(zip(names, kinds, strict=True)))
        return results

    def _carried(self, pending: _Pending) -> list[str]:
        """`iter_values(%a = %x, …)`: the names of the block's arguments."""
        cursor = self._cursor
        names: list[str] = []

        def item() -> Value:
            names.append(cursor.take())
            cursor.expect("=")
            return self._value()

        inits: tuple[Value, ...] = ()
        if cursor.accept("iter_values"):
            cursor.expect("(")
            inits = cursor.separated(item, ")")
        pending.add("init", inits)
        return names

    def _region(self, pending: _Pending, owner: str, arguments: list[tuple[str, Type]]) -> None:
        self._cursor.expect("{")
        outer = dict(self._scope)
        defined = tuple(self._define(name, kind) for name, kind in arguments)
        pending.regions.append(self._block(defined, owner))
        self._scope = outer

    def _if(self, pending: _Pending) -> tuple[Type, ...]:
        cursor = self._cursor
        pending.add("condition", (self._value(),))
        kinds: tuple[Type, ...] = ()
        if cursor.accept("->"):
            cursor.expect("(")
            kinds = cursor.separated(lambda: read_type(cursor), ")")
        self._region(pending, "if", [])
        if cursor.accept("else"):
            self._region(pending, "if", [])
        return kinds

    def _reduce(self, pending: _Pending) -> tuple[Type, ...]:
        return self._combine(pending, "reduce")

    def _scan(self, pending: _Pending) -> tuple[Type, ...]:
        return self._combine(pending, "scan")

    def _combine(self, pending: _Pending, owner: str) -> tuple[Type, ...]:
        cursor = self._cursor
        pending.add("operands", self._values())
        cursor.expect("dim")
        cursor.expect("=")
        pending.attributes["dim"] = cursor.integer()
        if cursor.accept("reverse"):
            cursor.expect("=")
            pending.attributes["reverse"] = cursor.boolean()
        self._identities(pending)
        self._trailing_types()
        cursor.expect("->")
        kinds = self._types_list()
        cursor.expect("(")
        outer = dict(self._scope)
        arguments = self._arguments(")")
        cursor.expect("{")
        pending.regions.append(self._block(arguments, owner))
        self._scope = outer
        return kinds

    def _identities(self, pending: _Pending) -> None:
        """`identities=[0xFF800000 : f32, -5 : i32]`; the text leaves out the types i1, i64 and f64."""
        cursor = self._cursor
        elements = [self._scalar_of(v) for v in pending.operands]
        cursor.expect("identities")
        cursor.expect("=")
        cursor.expect("[")
        numbers: list[Number] = []
        for element in elements:
            if numbers:
                cursor.expect(",")
            numbers.append(read_number(cursor, element))
            if cursor.accept(":"):
                cursor.expect(element)
        cursor.expect("]")
        pending.attributes["identities"] = tuple(value for value, _ in numbers)
        pending.attributes["bits"] = tuple(bits for _, bits in numbers)

    def _scalar_of(self, value: Value) -> str:
        kind = self._types[value]
        if isinstance(kind, TileType) and isinstance(kind.element, Scalar):
            return kind.element.name
        raise self._cursor.error("expected a tile of numbers")


_REGIONS: Mapping[str, Callable[[_Parser, _Pending], tuple[Type, ...]]] = {
    "for": _Parser._for,
    "loop": _Parser._loop,
    "if": _Parser._if,
    "reduce": _Parser._reduce,
    "scan": _Parser._scan,
}
_SPECIAL: Mapping[str, Callable[[_Parser, _Pending, str], None]] = {
    "hints": _Parser._hints_form,
    "booleans": _Parser._booleans,
    "symbol": _Parser._symbol,
    "predicate": _Parser._predicate,
    "extents": _Parser._extents,
    "constant": _Parser._constant,
}
