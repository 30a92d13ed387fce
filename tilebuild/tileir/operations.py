r"""How each Tile IR operation is written: one flat table for reading and for printing. Knows no parser.

A row is the operation's syntax between its name and its types, in words separated by spaces:

| word | stands for |
|---|---|
| `%lhs` `%index*` | one operand, any number of operands: the group of that name |
| `$mode` | an attribute that is a bare word |
| `$memory_scope\|tl_blk\|device\|sys` | the same, optional: present if the next word is one of these |
| `rounding<full` | an optional attribute `rounding<…>` with its default, which is always filled in |
| `flush_to_zero?` | an attribute that is a flag: True if written, absent if not |
| `#dim` `#permutation*` `'message` | an attribute that is a number, numbers, a string |
| `( , %mask )?` | optional part: present if its first literal is |
| `!hints` | a form with a function of its own in `parse` and `print` |
| anything else | itself |

`for`, `loop`, `if`, `reduce` and `scan` have regions and are not in this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Literal:
    text: str


@dataclass(frozen=True)
class Operand:
    group: str
    many: bool


@dataclass(frozen=True)
class Word:
    attribute: str
    choices: tuple[str, ...]  # empty: any word, required


@dataclass(frozen=True)
class Bracketed:
    attribute: str
    default: str


@dataclass(frozen=True)
class Flag:
    attribute: str


@dataclass(frozen=True)
class Numbers:
    attribute: str
    many: bool


@dataclass(frozen=True)
class Text:
    attribute: str


@dataclass(frozen=True)
class Special:
    form: str
    name: str


@dataclass(frozen=True)
class Part:
    """An optional part, recognised by its first literals."""

    parts: tuple[Syntax, ...]


Syntax: TypeAlias = Literal | Operand | Word | Bracketed | Flag | Numbers | Text | Special | Part

_UNARY = "%source"
_BINARY = "%lhs , %rhs"
_XY = "%x , %y"
_FLOAT = "rounding<nearest_even flush_to_zero?"
_OVERFLOW = "overflow<none"
_TOKEN = "( token = %token )?"
_SCOPE = "$memory_scope|tl_blk|device|sys"
_HINTS = "!hints:optimization_hints"
_INBOUNDS = "!booleans:inbounds"

#: Operations that treat each element of their operands alone, also where an operand is a pointer.
_ELEMENTWISE_ROWS: dict[str, str] = {
    # Floats
    "absf": _UNARY,
    "addf": f"{_BINARY} {_FLOAT}",
    "atan2": _XY,
    "ceil": _UNARY,
    "cmpf": "$predicate $ordering %lhs , %rhs",
    "cos": _UNARY,
    "cosh": _UNARY,
    "divf": f"{_BINARY} {_FLOAT}",
    "exp": f"{_UNARY} rounding<full",
    "exp2": f"{_UNARY} flush_to_zero?",
    "floor": _UNARY,
    "fma": f"{_BINARY} , %acc {_FLOAT}",
    "fpowf": "%source , %exponent",
    "fpowi": "%source , %exponent",
    "log": _UNARY,
    "log2": _UNARY,
    "maxf": f"{_BINARY} flush_to_zero? propagate_nan?",
    "minf": f"{_BINARY} flush_to_zero? propagate_nan?",
    "mulf": f"{_BINARY} {_FLOAT}",
    "negf": _UNARY,
    "remf": _BINARY,
    "rsqrt": f"{_UNARY} flush_to_zero?",
    "sin": _UNARY,
    "sinh": _UNARY,
    "sqrt": f"{_UNARY} {_FLOAT}",
    "subf": f"{_BINARY} {_FLOAT}",
    "tan": _UNARY,
    "tanh": f"{_UNARY} rounding<full",
    # Integers
    "absi": _UNARY,
    "addi": f"{_BINARY} {_OVERFLOW}",
    "andi": _BINARY,
    "cmpi": "$predicate %lhs , %rhs , $signedness",
    "divi": f"{_BINARY} $signedness rounding<zero",
    "maxi": f"{_BINARY} $signedness",
    "mini": f"{_BINARY} $signedness",
    "mulhii": _XY,
    "muli": f"{_BINARY} {_OVERFLOW}",
    "negi": f"{_UNARY} {_OVERFLOW}",
    "ori": _BINARY,
    "remi": f"{_BINARY} $signedness",
    "shli": f"{_BINARY} {_OVERFLOW}",
    "shri": f"{_BINARY} $signedness",
    "subi": f"{_BINARY} {_OVERFLOW}",
    "xori": _BINARY,
    "select": "%cond , %val_if_true , %val_if_false",
    # Conversions
    "bitcast": _UNARY,
    "exti": "%from $signedness",
    "ftof": "%from rounding<nearest_even",
    "ftoi": "%from $signedness rounding<nearest_int_to_zero saturating?",
    "int_to_ptr": _UNARY,
    "itof": "%from $signedness rounding<nearest_even",
    "ptr_to_int": _UNARY,
    "ptr_to_ptr": _UNARY,
    "trunci": f"%from {_OVERFLOW}",
    "offset": "%ptr , %offset",
}

_OTHER_ROWS: dict[str, str] = {
    # Shapes and constants
    "broadcast": _UNARY,
    "cat": f"{_BINARY} dim = #dim",
    "constant": "!constant:value",
    "extract": "%source [ %indices* ]",
    "insert": "%source , %destination [ %indices* ]",
    "iota": "",
    "pack": _UNARY,
    "permute": "%source [ #permutation* ]",
    "reshape": _UNARY,
    "unpack": _UNARY,
    # Matrices
    "mmaf": f"{_BINARY} , %acc fast_acc?",
    "mmaf_scaled": f"{_BINARY} , %acc , %lhs_scale , %rhs_scale",
    "mmai": f"{_BINARY} , %acc $signedness_lhs $signedness_rhs",
    # Pointers and views
    "alloca": "num_elem = #num_elem , alignment = #alignment global?",
    "assume": "!predicate:predicate , %value",
    "get_global": "!symbol:name",
    "get_index_space_shape": "%src",
    "get_num_tile_blocks": "",
    "get_tensor_shape": "%src",
    "get_tile_block_id": "",
    "make_gather_scatter_view": "%tensor_view",
    "make_partition_view": "%tensor_view",
    "make_strided_view": "%tensor_view",
    "make_tensor_view": "%base , shape = !extents:shape , strides = !extents:strides",
    # Memory
    "atomic_cas_tko": f"$memory_ordering $memory_scope %pointers , %cmp , %val ( , %mask )? {_TOKEN}",
    "atomic_red_view_tko": "$memory_ordering $memory_scope %view [ %index* ] , $mode , %value "
    f"{_TOKEN} {_INBOUNDS}",
    "atomic_rmw_tko": f"$memory_ordering $memory_scope %pointers , $mode , %arg ( , %mask )? {_TOKEN}",
    "load_ptr_tko": f"$memory_ordering {_SCOPE} %source ( , %mask )? ( , %padding_value )? {_TOKEN} {_HINTS}",
    "load_view_tko": f"$memory_ordering {_SCOPE} %view [ %index* ] {_TOKEN} {_HINTS} {_INBOUNDS}",
    "store_ptr_tko": f"$memory_ordering {_SCOPE} %destination , %value ( , %mask )? {_TOKEN} {_HINTS}",
    "store_view_tko": f"$memory_ordering {_SCOPE} %tile , %view [ %index* ] {_TOKEN} {_HINTS} {_INBOUNDS}",
    # Tokens and effects
    "assert": "%condition , 'message",
    "gdc_launch_dependents_tko": _TOKEN,
    "gdc_wait_tko": _TOKEN,
    "join_tokens": "%tokens*",
    "make_token": "",
    "memory_fence_alias_tko": "%token",
    "print_tko": f"'str ( , %args* )? {_TOKEN}",
    # Ends of blocks
    "break": "%operands*",
    "continue": "%operands*",
    "return": "%operands*",
    "yield": "%operands*",
}

#: Which of the printed types is the result's where no arrow says so; the last one unless listed here.
RESULT_TYPE: Mapping[str, int] = {"fpowi": 0, "mmaf_scaled": 2}

#: The operation that ends a block and is left out of the text where it has no operands.
IMPLIED_END: Mapping[str, str] = {"if": "yield", "for": "continue", "loop": "continue"}

ELEMENTWISE = frozenset(_ELEMENTWISE_ROWS)

#: Operations that read or write memory or order it, take part in output, or depend on when they run.
EFFECTS = frozenset(
    {
        "alloca",
        "assert",
        "atomic_cas_tko",
        "atomic_red_view_tko",
        "atomic_rmw_tko",
        "gdc_launch_dependents_tko",
        "gdc_wait_tko",
        "load_ptr_tko",
        "load_view_tko",
        "memory_fence_alias_tko",
        "print_tko",
        "store_ptr_tko",
        "store_view_tko",
    }
)

ENDS = frozenset({"break", "continue", "return", "yield"})

REGION_OPERATIONS = frozenset({"for", "loop", "if", "reduce", "scan"})


def _compile(words: list[str]) -> tuple[Syntax, ...]:
    parts: list[Syntax] = []
    while words:
        word = words.pop(0)
        if word == ")?":
            break
        parts.append(Part(_compile(words)) if word == "(" else _element(word))
    return tuple(parts)


def _element(word: str) -> Syntax:
    kind, name = word[0], word[1:]
    if kind == "%":
        return Operand(name.rstrip("*"), name.endswith("*"))
    if kind == "$":
        attribute, *choices = name.split("|")
        return Word(attribute, tuple(choices))
    if kind == "#":
        return Numbers(name.rstrip("*"), name.endswith("*"))
    if kind == "'":
        return Text(name)
    if kind == "!":
        form, _, attribute = name.partition(":")
        return Special(form, attribute)
    if word.endswith("?"):
        return Flag(word[:-1])
    attribute, bracket, default = word.partition("<")
    return Bracketed(attribute, default) if bracket else Literal(word)


SYNTAX: Mapping[str, tuple[Syntax, ...]] = {
    name: _compile(row.split()) for name, row in (_ELEMENTWISE_ROWS | _OTHER_ROWS).items()
}
