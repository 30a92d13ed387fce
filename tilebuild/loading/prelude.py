"""The functions that every BUILD file and macro has without loading them, as Starlark text.

Knows no rule by name.

A function that needs the file system or the package calls back, with its call stack first, by a name that
begins with an underscore. The value functions return plain data; `tilebuild.case` says what each may hold.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilebuild.loading.starlark import PRELUDE

_NATIVE = """
def glob(include, exclude = [], exclude_directories = 1, allow_empty = False):
    return _glob(str(call_stack()), include, exclude, exclude_directories, allow_empty)

def package(*, default_visibility = []):
    return _package(str(call_stack()), default_visibility)

def exports_files(srcs, visibility = ["//visibility:public"]):
    return _exports_files(str(call_stack()), srcs, visibility)

def package_group(*, name, packages = [], includes = []):
    return _package_group(str(call_stack()), name, packages, includes)

def package_name():
    return _package_name(str(call_stack()))

def select(branches, no_match_error = ""):
    return _select(str(call_stack()), branches, no_match_error)

def print(*args, sep = " "):
    return _print(str(call_stack()), sep.join([str(arg) for arg in args]))
"""

_VALUES = """
def array(
    dtype, shape, *, strides = None, offset = 0, fill = None, alias_of = None, index_dtype = "i32",
    role = "in",
):
    return {
        "kind": "array", "role": role, "dtype": dtype, "shape": shape, "strides": strides, "offset": offset,
        "fill": fill, "alias_of": alias_of, "index_dtype": index_dtype,
    }

def output(dtype, shape, **kwargs):
    return array(dtype, shape, role = "out", **kwargs)

def inout(dtype, shape, **kwargs):
    return array(dtype, shape, role = "inout", **kwargs)

def scratch(dtype, shape, **kwargs):
    return array(dtype, shape, role = "scratch", **kwargs)

def array_list(arrays):
    return {"kind": "list", "arrays": arrays}

def const(value):
    return {"kind": "const", "value": value}

def scalar(dtype, value):
    return {"kind": "scalar", "dtype": dtype, "value": value}

def launch(*, kernel, args, name = "", grid = None, hints = {}, benchmark = False):
    return {
        "kind": "launch", "name": name, "kernel": kernel, "args": args, "grid": grid, "hints": hints,
        "benchmark": benchmark,
    }

def case(name, *, arrays, steps, benchmark = False, seed = 0):
    return {
        "kind": "case", "name": name, "arrays": arrays, "steps": steps, "benchmark": benchmark, "seed": seed,
    }

def normal(mean = 0.0, std = 1.0):
    return {"kind": "normal", "mean": mean, "std": std}

def uniform(low = 0.0, high = 1.0):
    return {"kind": "uniform", "low": low, "high": high}

def integers(low, high):
    return {"kind": "integers", "low": low, "high": high}

def permutation():
    return {"kind": "permutation"}

def lengths(max):
    return {"kind": "lengths", "max": max}

def full(value):
    return {"kind": "constant", "value": value}

def ones():
    return full(1)

def zeros():
    return full(0)

def one_hot():
    return {"kind": "one_hot"}

def arange():
    return {"kind": "arange"}
"""

_NATIVE_NAMES = ("glob", "package", "exports_files", "package_group", "package_name")
_GLOBAL_NAMES = ("select", "print")
_VALUE_NAMES = (
    *("array", "output", "inout", "scratch", "array_list", "const", "scalar", "launch", "case"),
    *(
        "normal",
        "uniform",
        "integers",
        "permutation",
        "lengths",
        "full",
        "ones",
        "zeros",
        "one_hot",
        "arange",
    ),
)


def rule_functions(rules: Iterable[tuple[str, str]]) -> str:
    """Starlark text with a function for each rule: a name, and the key by which `_declare` knows it."""
    return "".join(
        f"def {name}(*args, **kwargs):\n    return _declare(str(call_stack()), {key!r}, len(args), kwargs)\n"
        for name, key in rules
    )


def prelude_text(rules: Iterable[tuple[str, str]]) -> str:
    """The text of the prelude, with the standard rules."""
    rules = list(rules)
    native = [*_NATIVE_NAMES, *(name for name, _ in rules)]
    struct = ", ".join(f"{name} = {name}" for name in native)
    return f"{_NATIVE}{_VALUES}{rule_functions(rules)}\nnative = struct({struct})\n"


def load_statement(rules: Iterable[str]) -> str:
    """The load that gives a BUILD or .bzl file everything in the prelude."""
    names = [*_NATIVE_NAMES, *rules, *_GLOBAL_NAMES, *_VALUE_NAMES, "native"]
    return f"load({PRELUDE!r}, {', '.join(map(repr, names))})\n"
