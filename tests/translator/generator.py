"""Makes cuTile Python kernels that combine operations at random. Knows how to write them, not what becomes of
them.

A kernel is grown statement by statement over typed variables, so that nearly all of them compile; what one
computes means nothing. The same seed gives the same kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

Shape: TypeAlias = tuple[int, int]

_FLOATS = ("f32", "f16", "bf16")
_LONG = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32"}
_FLOAT_UNARY = (
    *("ct.exp({})", "ct.exp2({}, flush_to_zero=True)", "ct.sin({})", "ct.cos({})", "ct.tanh({})", "-{}"),
    *("ct.sqrt(ct.abs({}))", "ct.rsqrt(ct.abs({}) + 1.0)", "ct.log(ct.abs({}) + 1.0)", "ct.floor({})"),
    *("ct.ceil({})", "ct.abs({})", "{} ** 2", "{} * 0.5", "1.0 - {}"),
)
_FLOAT_BINARY = (
    *("{} + {}", "{} - {}", "{} * {}", "{} / {}", "ct.maximum({}, {})", "ct.minimum({}, {})"),
    *("ct.add({}, {}, rounding_mode=ct.RoundingMode.RZ)", "ct.mul({}, {}, flush_to_zero=True)"),
    "ct.truediv({}, {}, rounding_mode=ct.RoundingMode.APPROX, flush_to_zero=True)",
)
#: Flags that only float32 knows.
_FLOAT32_ONLY = "flush_to_zero"
_INT_UNARY = (
    "~{}",
    "-{}",
    "ct.abs({})",
    "{} << 2",
    "{} >> 3",
    "{} // 7",
    "{} % 5",
    "{} & 255",
    "ct.cdiv({}, 3)",
)
_INT_BINARY = (
    *("{} + {}", "{} - {}", "{} * {}", "{} & {}", "{} | {}", "{} ^ {}", "{} // {}", "{} % {}"),
    *("ct.maximum({}, {})", "ct.minimum({}, {})"),
)
_COMPARISONS = ("<", "<=", "==", "!=", ">=", ">")
_SCALARS = ("{} * 2 + 1", "{} // 3", "{} % 7", "ct.cdiv({}, 4)", "min({}, 9)", "max({}, 2)", "{} - 5")
_PADDINGS = ("", ", padding_mode=ct.PaddingMode.ZERO", ", padding_mode=ct.PaddingMode.NEG_INF")
#: Names of variables; some are words of Rust or functions of cutile.
_WORDS = (
    *(
        "value",
        "row",
        "total",
        "match",
        "type",
        "Acc",
        "max",
        "tile",
        "loop",
        "weight",
        "Scaled",
        "ref",
        "shape",
    ),
    *("left", "right", "score", "mod", "low", "high", "blockSum", "select", "fn", "move", "peak", "mask"),
)


@dataclass(frozen=True)
class Variable:
    name: str
    dtype: str  # "bool" for masks
    shape: Shape


@dataclass(frozen=True)
class Kernel:
    """A kernel called `generated`, and its launch as case files write it."""

    source: str
    launch: str


@dataclass
class _Maker:
    random: Random
    rows: int
    columns: int
    dtype: str
    lines: list[str] = field(default_factory=list)
    tiles: list[Variable] = field(default_factory=list)
    scalars: list[str] = field(default_factory=lambda: ["n", "i"])
    depth: int = 1
    names: Counter[str] = field(default_factory=Counter)

    @property
    def shape(self) -> Shape:
        return self.rows, self.columns

    def write(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def name(self) -> str:
        word = self.random.choice(_WORDS)
        self.names[word] += 1
        return word if self.names[word] == 1 else f"{word}{self.names[word]}"

    def let(self, expression: str, dtype: str, shape: Shape) -> Variable:
        made = Variable(self.name(), dtype, shape)
        self.write(f"{made.name} = {expression}")
        self.tiles.append(made)
        return made

    def pick(self, wanted: Callable[[Variable], bool]) -> Variable | None:
        found = [v for v in self.tiles if wanted(v)]
        return self.random.choice(found[-6:]) if found else None

    # --- statements ---

    def load(self, column: str = "0") -> None:
        array = self.random.choice("xy")
        padding = self.random.choice(_PADDINGS[: 2 if self.dtype == "i32" else 3])
        self.let(f"ct.load({array}, index=(i, {column}), shape=(R, C){padding})", self.dtype, self.shape)

    def gather(self) -> None:
        lanes = self.name()
        self.write(f"{lanes} = ct.arange(C, dtype=ct.int32)")
        picked = self.name()
        padding = "" if self.random.random() < 0.5 else ", padding_value=1"
        self.write(f"{picked} = ct.gather({self.random.choice('xy')}, (i, {lanes}){padding})")
        self.let(f"{picked}[None, :]", self.dtype, (1, self.columns))

    def unary(self) -> None:
        if operand := self.pick(lambda v: v.dtype != "bool"):
            table = _INT_UNARY if operand.dtype == "i32" else _FLOAT_UNARY
            self.let(self._form(table, operand.dtype).format(operand.name), operand.dtype, operand.shape)

    def binary(self) -> None:
        left = self.pick(lambda v: v.dtype != "bool")
        right = left and self.pick(lambda v: v.dtype == left.dtype and _fit(v.shape, left.shape))
        if left and right:
            table = _INT_BINARY if left.dtype == "i32" else _FLOAT_BINARY
            text = self._form(table, left.dtype).format(left.name, right.name)
            self.let(text, left.dtype, _joined(left.shape, right.shape))

    def _form(self, table: Sequence[str], dtype: str) -> str:
        return self.random.choice([f for f in table if dtype == "f32" or _FLOAT32_ONLY not in f])

    def compare(self) -> None:
        left = self.pick(lambda v: v.dtype != "bool")
        right = left and self.pick(lambda v: v.dtype == left.dtype and _fit(v.shape, left.shape))
        if left and right:
            sign = self.random.choice(_COMPARISONS)
            self.let(f"{left.name} {sign} {right.name}", "bool", _joined(left.shape, right.shape))

    def choose(self) -> None:
        mask = self.pick(lambda v: v.dtype == "bool")
        left = mask and self.pick(lambda v: v.dtype != "bool" and _fit(v.shape, mask.shape))
        if mask and left:
            other = self.random.choice([left.name, "0", "1"]) if left.dtype == "i32" else "0.0"
            text = f"ct.where({mask.name}, {left.name}, {other})"
            self.let(text, left.dtype, _joined(mask.shape, left.shape))

    def combine_masks(self) -> None:
        left = self.pick(lambda v: v.dtype == "bool")
        right = left and self.pick(lambda v: v.dtype == "bool" and _fit(v.shape, left.shape))
        if left and right:
            sign = self.random.choice("&|^")
            self.let(f"{left.name} {sign} {right.name}", "bool", _joined(left.shape, right.shape))

    def cast(self) -> None:
        if operand := self.pick(lambda v: v.dtype != "bool"):
            dtype = self.random.choice([d for d in (*_FLOATS, "i32") if d != operand.dtype])
            self.let(f"{operand.name}.astype(ct.{_LONG[dtype]})", dtype, operand.shape)

    def reduce(self) -> None:
        if operand := self.pick(lambda v: v.dtype in ("f32", "i32")):
            axis = self.random.randrange(2)
            function = self.random.choice(("sum", "max", "min"))
            shape = (1, operand.shape[1]) if axis == 0 else (operand.shape[0], 1)
            self.let(f"ct.{function}({operand.name}, axis={axis}, keepdims=True)", operand.dtype, shape)

    def running_sum(self) -> None:
        if operand := self.pick(lambda v: v.dtype == "f32"):
            self.let(f"ct.cumsum({operand.name}, axis={self.random.randrange(2)})", "f32", operand.shape)

    def multiply(self) -> None:
        operand = self.pick(lambda v: v.dtype in ("f16", "bf16") and v.shape == self.shape)
        if operand and min(self.shape) >= 16:
            product = self.name()
            zero = "ct.full((R, R), 0.0, dtype=ct.float32)"
            self.write(f"{product} = ct.mma({operand.name}, ct.transpose({operand.name}), {zero})")
            self.let(f"ct.sum({product}, axis=1, keepdims=True)", "f32", (self.rows, 1))

    def shift_by_scalar(self) -> None:
        if operand := self.pick(lambda v: v.dtype in ("i32", "f32")):
            scalar = self.random.choice(self.scalars)
            self.let(f"{operand.name} {self.random.choice('+-*')} {scalar}", operand.dtype, operand.shape)

    def scalar(self) -> None:
        name = self.name()
        form = self.random.choice(_SCALARS)
        self.write(f"{name} = {form.format(self.random.choice(self.scalars))}")
        self.scalars.append(name)

    def branch(self) -> None:
        first = self.pick(lambda v: v.dtype != "bool")
        second = first and self.pick(lambda v: (v.dtype, v.shape) == (first.dtype, first.shape))
        if first and second:
            made = Variable(self.name(), first.dtype, first.shape)
            sign, bound = self.random.choice(_COMPARISONS), self.random.randrange(1, 9)
            self.write(f"if {self.random.choice(self.scalars)} {sign} {bound}:")
            self.write(f"    {made.name} = {first.name}")
            self.write("else:")
            self.write(f"    {made.name} = {second.name} * 2")
            self.tiles.append(made)

    def loop(self) -> None:
        """A loop over tiles that carries a sum; what it computes inside stays inside."""
        if self.depth > 1:
            return
        total, step = Variable(self.name(), "f32", self.shape), self.name()
        tiles = "ct.num_tiles(x, axis=1, shape=(R, C))"
        bound = self.random.choice(("n", "4", "i + 1", tiles, f"1, {tiles}", "0, n, 2"))
        self.write(f"{total.name} = ct.full((R, C), 0.0, dtype=ct.float32)")
        self.write(f"for {step} in range({bound}):")
        outside = list(self.tiles), list(self.scalars)
        self.depth += 1
        self.scalars.append(step)
        self.load(step)
        self.grow(self.random.randrange(2, 6))
        last = self.pick(lambda v: v.dtype != "bool") or self.tiles[-1]
        self.write(f"{total.name} = {total.name} + {last.name}.astype(ct.float32)")
        self.depth -= 1
        self.tiles, self.scalars = outside
        self.tiles.append(total)

    def grow(self, statements: int) -> None:
        kinds = [
            *([self.unary] * 4 + [self.binary] * 5 + [self.compare] * 2 + [self.choose] * 3),
            *(
                self.combine_masks,
                self.cast,
                self.cast,
                self.reduce,
                self.reduce,
                self.running_sum,
                self.gather,
            ),
            *(self.multiply, self.shift_by_scalar, self.scalar, self.branch, self.loop, self.loop, self.load),
        ]
        for _ in range(statements):
            self.random.choice(kinds)()

    def finish(self) -> None:
        """Stores what was computed, so that none of it is dead."""
        used = [v for v in self.tiles if v.dtype != "bool"][-5:]
        self.write(f"result = {' + '.join(f'{v.name}.astype(ct.float32)' for v in used)}")
        if any(v.shape == self.shape for v in used):
            self.write("ct.store(out, index=(i, 0), tile=result)")
        else:
            self.write("ct.store(out, index=(i, 0), tile=ct.full((R, C), 0.0, dtype=ct.float32) + result)")


def _fit(one: Shape, other: Shape) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(one, other, strict=True))


def _joined(one: Shape, other: Shape) -> Shape:
    return max(one[0], other[0]), max(one[1], other[1])


def generate(seed: int) -> Kernel:
    random = Random(seed)
    rows, columns = random.choice((1, 2, 8, 16, 32)), random.choice((16, 32, 64))
    maker = _Maker(random, rows, columns, random.choice((*_FLOATS, "f32", "i32")))
    maker.write("i = ct.bid(0)")
    if random.random() < 0.2:
        maker.write("if n < 0:")
        maker.write("    return")
    maker.load()
    maker.load("1")
    maker.grow(random.randrange(5, 14))
    maker.finish()
    head = ["import cuda.tile as ct", "", "", "@ct.kernel"]
    signature = "def generated(x, y, out, n: int, R: ct.Constant[int], C: ct.Constant[int]):"
    array = f"array {maker.dtype} {8 * rows} {random.choice((4 * columns, 3 * columns + 5))}"
    launch = [
        array,
        array,
        f"array f32 {8 * rows} {columns}",
        "scalar int32",
        f"const {rows}",
        f"const {columns}",
    ]
    return Kernel("\n".join([*head, signature, *maker.lines]) + "\n", "\n".join(launch))
