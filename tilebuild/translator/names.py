"""Names: those of the Python source in Rust's spelling, each once in a function, none that hides a
function.

Unique names also keep clear of a trap of cutile 0.5.0: a `let` inside a loop body that reuses the name of a
carried variable silently replaces it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tilebuild.translator.rust.tree import Function, defined, walk

_KEYWORDS = frozenset(
    [
        "as",
        "async",
        "await",
        "box",
        "break",
        "const",
        "continue",
        "crate",
        "do",
        "dyn",
        "else",
        "enum",
        "extern",
        "false",
        "final",
        "fn",
        "for",
        "gen",
        "if",
        "impl",
        "in",
        "let",
        "loop",
        "macro",
        "match",
        "mod",
        "move",
        "mut",
        "override",
        "priv",
        "pub",
        "ref",
        "return",
        "self",
        "static",
        "struct",
        "super",
        "trait",
        "true",
        "try",
        "type",
        "typeof",
        "unsafe",
        "unsized",
        "use",
        "virtual",
        "where",
        "while",
        "yield",
        "abstract",
        "become",
    ]
)

#: Functions that `use cutile::core::*` brings; a variable of that name would hide them.
_FUNCTIONS = frozenset(
    [
        "absf",
        "absi",
        "add_tile",
        "addf",
        "addi",
        "addptr",
        "addptr_tile",
        "alloca",
        "andi",
        "assume_bounds",
        "assume_bounds_lower",
        "assume_bounds_upper",
        "assume_div_by",
        "atan2",
        "atomic_cas_tko",
        "atomic_rmw_tko",
        "bitcast",
        "broadcast",
        "broadcast_ptr",
        "broadcast_scalar",
        "cast_const",
        "cast_mut",
        "cat",
        "ceil",
        "ceil_div",
        "check_partition_access",
        "cmpf",
        "cmpi",
        "constant",
        "convert_scalar",
        "convert_tile",
        "coord",
        "cos",
        "cosh",
        "dim_map",
        "divf",
        "divi",
        "eq_tile",
        "exp",
        "exp2",
        "extract",
        "exti",
        "floor",
        "fma",
        "fpowf",
        "fpowi",
        "ftof",
        "ftoi",
        "ftz",
        "gdc_wait_tko",
        "ge_tile",
        "get_index_space_shape",
        "get_shape_dim",
        "get_tensor_shape",
        "get_tile_block_id",
        "get_num_tile_blocks",
        "gt_tile",
        "insert",
        "int_to_ptr",
        "iota",
        "itof",
        "join_tokens",
        "latency",
        "le_tile",
        "load_ptr_tko",
        "load_tile",
        "load_tile_like",
        "load_view_raw",
        "load_view_tko",
        "log",
        "log2",
        "lt_tile",
        "make_partition_view",
        "make_tensor_view",
        "max",
        "max_tile",
        "maxf",
        "maxi",
        "min",
        "min_tile",
        "minf",
        "mini",
        "mma",
        "mmaf",
        "mmaf_scaled",
        "mmai",
        "mulf",
        "mulhii",
        "muli",
        "nan",
        "ne_tile",
        "negf",
        "negi",
        "new_token_unordered",
        "noti",
        "num_programs",
        "num_tiles",
        "ordering",
        "ori",
        "overflow",
        "pack",
        "padding",
        "permute",
        "pointer_to_tile",
        "pow",
        "predicate",
        "print_tko",
        "program_id",
        "ptr_to_int",
        "ptr_to_ptr",
        "reduce",
        "reduce_max",
        "reduce_min",
        "reduce_prod",
        "reduce_sum",
        "remf",
        "remi",
        "reshape",
        "reshape_ptr",
        "reverse",
        "rounding",
        "rsqrt",
        "scalar_to_tile",
        "scan",
        "scan_sum",
        "scope",
        "select",
        "shape",
        "shli",
        "shri",
        "signedness",
        "sin",
        "sinh",
        "sqrt",
        "store_ptr_tko",
        "store_tile",
        "store_view_raw",
        "subf",
        "subi",
        "tan",
        "tanh",
        "tile_to_pointer",
        "tile_to_scalar",
        "tma",
        "true_div",
        "trunci",
        "unpack",
        "xori",
    ]
)


def snake(name: str) -> str:
    """A Python name in Rust's spelling: words in lower case joined by `_`; empty if nothing is left."""
    text = re.sub(r"[^0-9A-Za-z_]", "_", name)
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text).lower().strip("_")
    text = re.sub(r"__+", "_", text)
    return f"_{text}" if text[:1].isdigit() else text


def allocate(function: Function, taken: Iterable[str]) -> None:
    """Gives every variable of the function its name; names of the Python source first."""
    used = set(taken) | _KEYWORDS | _FUNCTIONS
    locals_ = [p.local for p in function.parameters]
    for statement in walk(function.body):
        locals_ += defined(statement)
    # Parameters keep the name that callers see, even if it hides a function that the kernel does not call.
    for local in locals_:
        local.name = ""
    for local in [x for x in locals_ if x.python] + [x for x in locals_ if not x.python]:
        if not local.name:
            local.name = local.prefix + _free(snake(local.hint) or "value", used)
            used.add(local.name)


def _free(name: str, used: set[str]) -> str:
    if name in _KEYWORDS | _FUNCTIONS:
        name += "_value"
    candidate, count = name, 1
    while candidate in used:
        count += 1
        candidate = f"{name}_{count}"
    return candidate


def function_name(kernel: str) -> str:
    """The name of the Rust function for a Python kernel."""
    name = snake(kernel)
    return f"{name}_kernel" if name in _KEYWORDS | _FUNCTIONS else name
