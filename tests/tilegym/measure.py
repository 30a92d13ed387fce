"""How long and how readable a port is: lines of code on both sides, names, shims. Works on texts alone and
knows neither a kernel nor a build.

A line of code is one that holds more than blanks, comments and documentation.
"""

from __future__ import annotations

import ast
import io
import posixpath
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilebuild.translator.names import snake

_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
#: How a Rust name says more than the Python name that it is made of.
_ROLE = r"(_tiles|_view|_pointer|_token|_value|_in|_out)?(_\d+)?"


# --- Python ---------------------------------------------------------------------------------------


def python_lines(library: Mapping[str, str], path: str, kernel: str) -> int:
    """Lines of code of a kernel, of all functions that it calls and of the constants that it reads."""
    return sum(len(_code_lines(library[file], node)) for file, node in _closure(library, path, kernel))


def _closure(library: Mapping[str, str], path: str, kernel: str) -> Iterator[tuple[str, ast.stmt]]:
    """The definition of a name at the top of a file and of every name that it needs, each once."""
    seen: set[tuple[str, int]] = set()
    pending = [(path, kernel)]
    while pending:
        file, name = pending.pop()
        found = _definition(library, file, name)
        if found is None or (found[0], found[1].lineno) in seen:
            continue
        seen.add((found[0], found[1].lineno))
        yield found
        used = (node.id for node in ast.walk(found[1]) if isinstance(node, ast.Name))
        pending += [(found[0], word) for word in used]


def _definition(library: Mapping[str, str], path: str, name: str) -> tuple[str, ast.stmt] | None:
    """Where a name of the top level is defined, in this file or in one that it is imported from."""
    for node in ast.parse(library[path]).body:
        match node:
            case ast.FunctionDef(name=defined) if defined == name:
                return path, node
            case ast.Assign(targets=[ast.Name(id=defined)]) if defined == name:
                return path, node
            case ast.ImportFrom(module=module, level=level):
                origin = _module_file(library, path, module or "", level)
                for alias in node.names if origin else ():
                    if (alias.asname or alias.name) == name:
                        return _definition(library, origin, alias.name)
    return None


def _module_file(library: Mapping[str, str], path: str, module: str, level: int) -> str:
    """The file of an imported module; empty for one outside the library."""
    folder = "" if not level else posixpath.normpath(posixpath.join(path, *[".."] * level)) + "/"
    file = f"{folder}{module.replace('.', '/')}.py"
    return file if file in library else ""


def _code_lines(text: str, node: ast.stmt) -> set[int]:
    start = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    documented = {
        line
        for inner in ast.walk(node)
        if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant)
        for line in range(inner.lineno, (inner.end_lineno or inner.lineno) + 1)
        if isinstance(inner.value.value, str)
    }
    return {line for line in lines - documented if start <= line <= (node.end_lineno or start)}


# --- Rust -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RustSize:
    """Lines of code of a port: the device module with its helpers, and the launchers on the host."""

    device: int
    launchers: int
    entries: int
    shims: int


def rust_size(text: str) -> RustSize:
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith("#[cutile::module")), len(lines))
    end = next((i for i in range(start, len(lines)) if lines[i] == "}"), len(lines) - 1)
    device = lines[start : end + 1]
    return RustSize(
        device=_rust_lines(device),
        launchers=_rust_lines([*lines[:start], *lines[end + 1 :]]),
        entries=sum(bool(re.match(r"\s*#\[\w+::entry\b", line)) for line in device),
        shims=sum("#[cuda_tile::" in line for line in device),
    )


def _rust_lines(lines: Sequence[str]) -> int:
    return sum(bool(line.strip()) and not line.lstrip().startswith("//") for line in lines)


# --- names ----------------------------------------------------------------------------------------


def kept_names(rust: str, python: Sequence[str]) -> int:
    """How many of these values, by their Python names, have a variable in Rust that carries the name."""
    code = "\n".join(line for line in rust.splitlines() if not line.lstrip().startswith("//"))
    words = set(re.findall(r"[A-Za-z_]\w*", code))
    bases = {re.sub(rf"{_ROLE}$", "", word) for word in words} | words
    return sum(_in_rust(name) & bases != set() for name in python)


def _in_rust(name: str) -> set[str]:
    """The spellings that a Python name may have: of a part of an array, `x.shape[0]`, that of the array."""
    whole = snake(name)
    part = snake(re.split(r"[.\[]", name)[0])
    return {whole, part, whole.upper(), part.upper()} - {""}


def numbered_names(rust: str) -> list[str]:
    """Identifiers that say nothing: a letter and a number."""
    return sorted(set(re.findall(r"\b(?:let|mut|for)\s+(v\d+(?:_\w+)?)\b", rust)))
