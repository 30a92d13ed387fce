"""Random edits of Tile IR, some that keep its meaning and some that change it. Knows nothing of how programs
are compared.

An edit takes a program and a source of random choices, and gives another program, or None where it does not
apply. A changing edit touches only operations that the program needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tilebuild.tileir.liveness import liveness
from tilebuild.tileir.operations import ELEMENTWISE
from tilebuild.tileir.tree import (
    AttributeValue,
    Block,
    Entry,
    Operation,
    PartitionViewType,
    Scalar,
    TileType,
    TokenType,
    Type,
    Value,
)

Edit = Callable[["Program", Random], "Entry | None"]

_PURE = ELEMENTWISE | {
    "broadcast",
    "constant",
    "get_num_tile_blocks",
    "get_tile_block_id",
    "iota",
    "make_partition_view",
    "make_tensor_view",
    "permute",
    "reshape",
}
#: Right operands that change nothing.
_NEUTRAL = {"muli": 1, "addi": 0, "xori": 0}
_COMMUTATIVE = ("addf", "mulf", "addi", "muli", "andi", "ori", "xori", "maxi", "mini")


@dataclass
class Program:
    """A program and helpers to change it; new values get the next numbers."""

    entry: Entry

    def __post_init__(self) -> None:
        self.types: list[Type] = list(self.entry.types)
        self.live = liveness(self.entry)
        self.source = {r: o for o in self.entry.walk() for r in o.results}

    def new(self, kind: Type) -> Value:
        self.types.append(kind)
        return len(self.types) - 1

    def operations(self, *names: str) -> list[Operation]:
        """The needed operations of some names, in program order; all if none is given."""
        return [o for o in self.entry.walk() if self.live.holds(o) and (not names or o.name in names)]

    def with_body(self, body: Block, **changes: Any) -> Entry:
        return replace(self.entry, body=body, types=tuple(self.types), **changes)

    def swap(self, old: Operation, *new: Operation) -> Entry:
        """One operation replaced by others."""
        return self.with_body(_replaced(self.entry.body, old, new))

    def using(self, operation: Operation, position: int, value: Value) -> Operation:
        operands = list(operation.operands)
        operands[position] = value
        return replace(operation, operands=tuple(operands))

    def shape_of(self, value: Value, depth: int = 12) -> object:
        """How a value is computed, as far as that is simple: two values with equal ones may be equal."""
        operation = self.source.get(value)
        if operation is None or depth == 0 or operation.regions:
            return value
        if operation.name == "assume":
            return self.shape_of(operation.operands[0], depth)
        if operation.name not in _PURE:
            return value
        if operation.name in _NEUTRAL and self._is(operation.operands[1], _NEUTRAL[operation.name]):
            return self.shape_of(operation.operands[0], depth)
        place = operation.results.index(value)
        attributes = tuple(sorted((k, repr(v)) for k, v in operation.attributes.items()))
        operands = tuple(self.shape_of(v, depth - 1) for v in operation.operands)
        return operation.name, place, attributes, operands, str(self.types[value])

    def _is(self, value: Value, number: int) -> bool:
        operation = self.source.get(value)
        return operation is not None and operation.attributes.get("value") == number


def _replaced(block: Block, old: Operation, new: tuple[Operation, ...]) -> Block:
    operations: list[Operation] = []
    for operation in block.operations:
        if operation is old:
            operations += new
        else:
            regions = tuple(_replaced(r, old, new) for r in operation.regions)
            same = all(a is b for a, b in zip(regions, operation.regions, strict=True))
            operations.append(operation if same else replace(operation, regions=regions))
    if len(operations) == len(block.operations) and all(
        a is b for a, b in zip(operations, block.operations, strict=True)
    ):
        return block
    return replace(block, operations=tuple(operations))


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for operation in block.operations:
        for region in operation.regions:
            yield from _blocks(region)


def _pick(random: Random, items: list[Any]) -> Any:
    return random.choice(items) if items else None


# Edits that keep the meaning


def reorder(p: Program, random: Random) -> Entry | None:
    """Swaps two neighbours of which neither uses the other's results."""
    places = [
        (block, i)
        for block in _blocks(p.entry.body)
        for i, (a, b) in enumerate(zip(block.operations, block.operations[1:-1], strict=False))
        if not set(a.results) & _used(b)
        and not (a.regions and b.regions)
        and "assert" not in (a.name, b.name)
    ]
    place = _pick(random, places)
    if place is None:
        return None
    block, i = place
    first, second = block.operations[i : i + 2]
    halfway = _replaced(p.entry.body, first, (second, first))
    return p.with_body(_without_second(halfway, second))


def _without_second(body: Block, operation: Operation) -> Block:
    """Drops the later one of two occurrences of one operation in a block."""
    for block in _blocks(body):
        at = [i for i, o in enumerate(block.operations) if o is operation]
        if len(at) == 2:
            kept = (*block.operations[: at[1]], *block.operations[at[1] + 1 :])
            return _with_block(body, block, replace(block, operations=kept))
    raise AssertionError("the operation is there twice")


def _with_block(body: Block, old: Block, new: Block) -> Block:
    if body is old:
        return new
    operations = tuple(
        replace(o, regions=tuple(_with_block(r, old, new) for r in o.regions)) if o.regions else o
        for o in body.operations
    )
    return replace(body, operations=operations)


def _used(operation: Operation) -> set[Value]:
    inner = (v for r in operation.regions for b in _blocks(r) for o in b.operations for v in o.operands)
    return {*operation.operands, *inner}


def compute_twice(p: Program, random: Random) -> Entry | None:
    """A second copy of a pure operation, for one use of the first."""
    operation = _pick(random, [o for o in p.operations(*_PURE) if len(o.results) == 1])
    if operation is None:
        return None
    copy = replace(operation, results=(p.new(p.types[operation.results[0]]),))
    entry = p.swap(operation, operation, copy)
    uses = [o for o in entry.walk() if operation.results[0] in o.operands and o is not copy]
    use = _pick(random, uses)
    if use is None:
        return entry
    changed = p.using(use, use.operands.index(operation.results[0]), copy.results[0])
    return replace(entry, body=_replaced(entry.body, use, (changed,)))


def unused_constant(p: Program, random: Random) -> Entry | None:
    operation = _pick(random, p.operations())
    kind = TileType((), Scalar("i32"))
    constant = Operation("constant", (), (p.new(kind),), {"value": random.randrange(100)})
    return p.swap(operation, constant, operation)


def commute(p: Program, random: Random) -> Entry | None:
    operation = _pick(random, p.operations(*_COMMUTATIVE))
    if operation is None:
        return None
    return p.swap(operation, replace(operation, operands=operation.operands[::-1]))


def join_more(p: Program, random: Random) -> Entry | None:
    """Waits for a fresh token besides what an operation waits for."""
    operation = _pick(random, [o for o in p.operations() if o.group("token") and len(o.group("token")) == 1])
    if operation is None:
        return None
    old = operation.group("token")[0]
    fresh, both = p.new(TokenType()), p.new(TokenType())
    make = Operation("make_token", (), (fresh,))
    tokens = random.sample([old, old, fresh], 3)
    join = Operation("join_tokens", tuple(tokens), (both,), segments={"tokens": 3})
    return p.swap(operation, make, join, p.using(operation, operation.operands.index(old), both))


def turn_condition(p: Program, random: Random) -> Entry | None:
    """Negates the condition of an `if` and swaps its branches."""
    operation = _pick(random, [o for o in p.operations("if") if len(o.regions) == 2])
    if operation is None:
        return None
    kind = TileType((), Scalar("i1"))
    true, turned = p.new(kind), p.new(kind)
    constant = Operation("constant", (), (true,), {"value": True})
    negation = Operation(
        "xori", (operation.group("condition")[0], true), (turned,), segments={"lhs": 1, "rhs": 1}
    )
    swapped = replace(p.using(operation, 0, turned), regions=operation.regions[::-1])
    return p.swap(operation, constant, negation, swapped)


def bound_block_id(p: Program, random: Random) -> Entry | None:
    """States what holds of every block's index anyway."""
    operation = _pick(random, p.operations("get_tile_block_id", "get_num_tile_blocks"))
    if operation is None:
        return None
    value = random.choice(operation.results)
    bounded = p.new(p.types[value])
    fact: dict[str, AttributeValue] = {"predicate": "bounded", "lower": 0}
    assume = Operation("assume", (value,), (bounded,), fact, {"value": 1})
    entry = p.swap(operation, operation, assume)
    use = _pick(random, [o for o in entry.walk() if value in o.operands and o is not assume])
    if use is None:
        return entry
    changed = p.using(use, use.operands.index(value), bounded)
    return replace(entry, body=_replaced(entry.body, use, (changed,)))


def carry_unchanged(p: Program, random: Random) -> Entry | None:
    """Lets a `for` loop carry a value that no iteration changes."""
    loops = [o for o in p.operations("for") if o.regions[0].operations[-1].operands]
    loop = _pick(random, [o for o in loops if not any(i.name == "continue" for i in _nested(o))])
    if loop is None:
        return None
    value = loop.group("upper")[0]
    argument, result = p.new(p.types[value]), p.new(p.types[value])
    body = loop.regions[0]
    end = body.operations[-1]
    longer = replace(end, operands=(*end.operands, argument), segments={"operands": len(end.operands) + 1})
    operations = tuple(_renamed(o, value, argument) for o in body.operations[:-1])
    region = Block((*body.arguments, argument), (*operations, longer))
    segments = {**loop.segments, "init": len(loop.group("init")) + 1}
    changed = replace(
        loop,
        operands=(*loop.operands, value),
        results=(*loop.results, result),
        segments=segments,
        regions=(region,),
    )
    return p.swap(loop, changed)


def _nested(loop: Operation) -> Iterator[Operation]:
    for operation in loop.regions[0].operations[:-1]:
        for region in operation.regions:
            for block in _blocks(region):
                yield from block.operations


def _renamed(operation: Operation, old: Value, new: Value) -> Operation:
    regions = tuple(
        replace(r, operations=tuple(_renamed(o, old, new) for o in r.operations)) for r in operation.regions
    )
    operands = tuple(new if v == old else v for v in operation.operands)
    return replace(operation, operands=operands, regions=regions)


def compute_inside(p: Program, random: Random) -> Entry | None:
    """Moves a pure operation from before a loop to the start of its body, if only the body uses it."""
    candidates = []
    for block in _blocks(p.entry.body):
        for loop in block.operations:
            if loop.name not in ("for", "loop"):
                continue
            for operation in block.operations:
                if operation.name in _PURE and _only_inside(p, operation, loop):
                    candidates.append((operation, loop))
    choice = _pick(random, candidates)
    if choice is None:
        return None
    operation, loop = choice
    region = replace(loop.regions[0], operations=(operation, *loop.regions[0].operations))
    entry = p.swap(loop, replace(loop, regions=(region,)))
    return replace(entry, body=_first_dropped(entry.body, operation))


def _only_inside(p: Program, operation: Operation, loop: Operation) -> bool:
    inside = {id(o) for b in _blocks(loop.regions[0]) for o in b.operations}
    users = [o for o in p.entry.walk() if set(operation.results) & set(o.operands)]
    return bool(users) and all(id(o) in inside for o in users)


def _first_dropped(body: Block, operation: Operation) -> Block:
    """Drops the outer one of two occurrences of an operation."""
    for block in _blocks(body):
        at = [i for i, o in enumerate(block.operations) if o is operation]
        if at:
            kept = (*block.operations[: at[0]], *block.operations[at[0] + 1 :])
            return _with_block(body, block, replace(block, operations=kept))
    raise AssertionError("the operation is there")


def splat_by_hand(p: Program, random: Random) -> Entry | None:
    """A constant tile as a constant scalar that is reshaped and broadcast."""
    constants = [o for o in p.operations("constant") if not isinstance(o.attributes["value"], tuple)]
    operation = _pick(random, [o for o in constants if _tile(p, o.results[0]).shape])
    if operation is None:
        return None
    kind = _tile(p, operation.results[0])
    one = TileType((1,) * len(kind.shape), kind.element)
    scalar, ones = p.new(TileType((), kind.element)), p.new(one)
    source = {"source": 1}
    return p.swap(
        operation,
        Operation("constant", (), (scalar,), operation.attributes),
        Operation("reshape", (scalar,), (ones,), segments=source),
        Operation("broadcast", (ones,), operation.results, segments=source),
    )


def _tile(p: Program, value: Value) -> TileType:
    kind = p.types[value]
    assert isinstance(kind, TileType)
    return kind


KEEPING: dict[str, Edit] = {
    f.__name__: f
    for f in (
        reorder,
        compute_twice,
        unused_constant,
        commute,
        join_more,
        turn_condition,
        bound_block_id,
        carry_unchanged,
        compute_inside,
        splat_by_hand,
    )
}


# Edits that change the meaning


def swap_operands(p: Program, random: Random) -> Entry | None:
    operation = _pick(
        random,
        [
            o
            for o in p.operations("subf", "divf", "subi", "divi", "remi", "shli", "cmpi", "cmpf", "select")
            if o.attributes.get("predicate") not in ("equal", "not_equal")
            and p.shape_of(o.operands[-1]) != p.shape_of(o.operands[-2])
        ],
    )
    if operation is None:
        return None
    *rest, left, right = operation.operands
    return p.swap(operation, replace(operation, operands=(*rest, right, left)))


_OTHER_WORDS: dict[str, tuple[str, ...]] = {
    "rounding": ("nearest_even", "zero", "negative_inf", "positive_inf"),
    "predicate": ("equal", "not_equal", "less_than", "less_than_or_equal", "greater_than"),
    "ordering": ("ordered", "unordered"),
    "mode": ("add", "max", "xchg"),
    "memory_ordering": ("weak", "relaxed"),
}
_FLAGS = {"exp2": "flush_to_zero", "addf": "flush_to_zero", "mulf": "flush_to_zero", "maxf": "propagate_nan"}


def change_word(p: Program, random: Random) -> Entry | None:
    """Another rounding, predicate, mode or order."""
    places = [
        (o, key)
        for o in p.operations()
        for key in _OTHER_WORDS
        if key in o.attributes and not (o.name == "assume" and key == "predicate")
    ]
    place = _pick(random, places)
    if place is None:
        return None
    operation, key = place
    words = [w for w in _OTHER_WORDS[key] if w != operation.attributes[key]]
    return p.swap(
        operation, replace(operation, attributes={**operation.attributes, key: random.choice(words)})
    )


def change_flag(p: Program, random: Random) -> Entry | None:
    operation = _pick(random, p.operations(*_FLAGS))
    if operation is None:
        return None
    flag = _FLAGS[operation.name]
    attributes = {k: v for k, v in operation.attributes.items() if k != flag}
    if flag not in operation.attributes:
        attributes[flag] = True
    return p.swap(operation, replace(operation, attributes=attributes))


def change_constant(p: Program, random: Random) -> Entry | None:
    operation = _pick(
        random, [o for o in p.operations("constant") if not isinstance(o.attributes["value"], tuple)]
    )
    if operation is None:
        return None
    attributes = dict(operation.attributes)
    if "bits" in attributes:
        attributes["bits"] ^= 1 << random.randrange(8, 15)
    elif isinstance(attributes["value"], bool):
        attributes["value"] = not attributes["value"]
    else:
        attributes["value"] += random.choice((-1, 1, 16))
    return p.swap(operation, replace(operation, attributes=attributes))


def change_identity(p: Program, random: Random) -> Entry | None:
    operation = _pick(random, p.operations("reduce", "scan"))
    if operation is None:
        return None
    bits = list(operation.attributes["bits"])
    at = random.randrange(len(bits))
    bits[at] ^= 1 << random.randrange(0, 7)
    identities = list(operation.attributes["identities"])
    identities[at] = bits[at]  # what counts for integers; for floats the bits do
    attributes = {**operation.attributes, "bits": tuple(bits), "identities": tuple(identities)}
    return p.swap(operation, replace(operation, attributes=attributes))


def change_reduction(p: Program, random: Random) -> Entry | None:
    """Another axis, or the other direction of a scan."""
    operation = _pick(random, p.operations("reduce", "scan"))
    if operation is None:
        return None
    attributes = dict(operation.attributes)
    if operation.name == "scan" and random.random() < 0.5:
        attributes["reverse"] = not attributes["reverse"]
    else:
        attributes["dim"] += 1
    return p.swap(operation, replace(operation, attributes=attributes))


_OTHER_OPERATION = {"addf": "subf", "subf": "addf", "mulf": "addf", "addi": "subi", "muli": "addi"} | {
    "maxf": "minf",
    "andi": "ori",
    "exp": "exp2",
    "negf": "absf",
}


def change_operation(p: Program, random: Random) -> Entry | None:
    operation = _pick(random, [o for o in p.operations(*_OTHER_OPERATION) if o.name != "exp"])
    return (
        None
        if operation is None
        else p.swap(operation, replace(operation, name=_OTHER_OPERATION[operation.name]))
    )


def change_operand(p: Program, random: Random) -> Entry | None:
    """Another value of the same type that is there, too."""
    operation = _pick(
        random, [o for o in p.operations() if o.operands and o.name not in ("assume", "continue")]
    )
    if operation is None or operation.name in ("yield", "break", "if"):
        return None
    position = random.randrange(len(operation.operands))
    old = operation.operands[position]
    if isinstance(p.types[old], TokenType):
        return None
    known = p.shape_of(old)
    others = [
        v
        for v in _visible(p, operation)
        if p.types[v] == p.types[old] and p.shape_of(v) != known and v != old
    ]
    # With symmetric operands a change of one to the other may be none.
    others = [v for v in others if p.shape_of(v) not in [p.shape_of(o) for o in operation.operands]]
    other = _pick(random, others)
    return None if other is None else p.swap(operation, p.using(operation, position, other))


def _visible(p: Program, operation: Operation) -> list[Value]:
    """Values of the outermost block that are defined before an operation."""
    found = list(p.entry.parameters)
    for one in p.entry.body.operations:
        if one is operation or any(
            o is operation for r in one.regions for b in _blocks(r) for o in b.operations
        ):
            return found
        found += one.results
    return found


def change_padding(p: Program, random: Random) -> Entry | None:
    """Another padding of a view that is loaded from."""
    loaded = {o.group("view")[0] for o in p.operations("load_view_tko")}
    view = _pick(random, [o for o in p.operations("make_partition_view") if o.results[0] in loaded])
    if view is None:
        return None
    kind = p.types[view.results[0]]
    assert isinstance(kind, PartitionViewType)
    paddings = [x for x in ("", "zero", "neg_inf", "nan") if x != kind.padding]
    p.types[view.results[0]] = replace(kind, padding=random.choice(paddings))
    return p.with_body(p.entry.body)


def drop_mask(p: Program, random: Random) -> Entry | None:
    masked = [o for o in p.operations() if o.group("mask") and not o.group("padding_value")]
    operation = _pick(random, masked)
    if operation is None:
        return None
    mask = operation.group("mask")[0]
    at = list(operation.operands).index(mask)
    operands = operation.operands[:at] + operation.operands[at + 1 :]
    segments = {k: n for k, n in operation.segments.items() if k != "mask"}
    return p.swap(operation, replace(operation, operands=operands, segments=segments))


def drop_order(p: Program, random: Random) -> Entry | None:
    """Waits for nothing where an operation waited for something that matters."""
    waiting = [o for o in p.operations() if o.group("token") and _matters(p, o)]
    operation = _pick(random, waiting)
    if operation is None:
        return None
    fresh = p.new(TokenType())
    at = list(operation.operands).index(operation.group("token")[0])
    return p.swap(operation, Operation("make_token", (), (fresh,)), p.using(operation, at, fresh))


def _matters(p: Program, operation: Operation) -> bool:
    """Whether an event that is not a load next to a load may come before an operation."""
    arguments = {a: o for o in p.entry.walk() for r in o.regions for a in r.arguments}
    load = operation.name.startswith("load")
    seen: set[Value] = set()
    open_values = [operation.group("token")[0]]
    while open_values:
        value = open_values.pop()
        if value in seen:
            continue
        seen.add(value)
        before = p.source.get(value) or arguments.get(value)
        if before is None:
            continue
        matters = ("store", "atomic") if load else ("store", "atomic", "load")
        if before.name.startswith(matters) and p.live.holds(before):
            return True
        open_values += [v for v in before.operands if isinstance(p.types[v], TokenType)]
        for region in before.regions:
            ends = [
                o for b in _blocks(region) for o in b.operations if o.name in ("yield", "continue", "break")
            ]
            open_values += [v for o in ends for v in o.operands if isinstance(p.types[v], TokenType)]
    return False


def drop_store(p: Program, random: Random) -> Entry | None:
    operation = _pick(random, p.operations("store_view_tko", "store_ptr_tko"))
    if operation is None:
        return None
    return p.swap(operation, Operation("make_token", (), operation.results))


def promise_more(p: Program, random: Random) -> Entry | None:
    """A larger divisor."""
    operation = _pick(random, [o for o in p.operations("assume") if o.attributes["predicate"] == "div_by"])
    if operation is None:
        return None
    divisor = operation.attributes["divisor"]
    assert isinstance(divisor, int)
    return p.swap(operation, replace(operation, attributes={**operation.attributes, "divisor": divisor * 64}))


def promise_less(p: Program, random: Random) -> Entry | None:
    """Divisible by one only, wherever the same value was said to be divisible by more."""
    operation = _pick(random, [o for o in p.operations("assume") if o.attributes["predicate"] == "div_by"])
    if operation is None:
        return None
    root = p.shape_of(operation.results[0])
    entry = p.entry
    for other in p.operations("assume"):
        if other.attributes["predicate"] == "div_by" and p.shape_of(other.results[0]) == root:
            changed = replace(other, attributes={**other.attributes, "divisor": 1})
            entry = replace(entry, body=_replaced(entry.body, other, (changed,)))
    return entry


def swap_branches(p: Program, random: Random) -> Entry | None:
    operation = _pick(random, [o for o in p.operations("if") if len(o.regions) == 2])
    return (
        None if operation is None else p.swap(operation, replace(operation, regions=operation.regions[::-1]))
    )


CHANGING: dict[str, Edit] = {
    f.__name__: f
    for f in (
        swap_operands,
        change_word,
        change_flag,
        change_constant,
        change_identity,
        change_reduction,
        change_operation,
        change_operand,
        change_padding,
        drop_mask,
        drop_order,
        drop_store,
        promise_more,
        promise_less,
        swap_branches,
    )
}
