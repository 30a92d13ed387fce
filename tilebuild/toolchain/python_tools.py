"""What stands for a Python tool in keys: the sources it is made of, and the versions of the distributions it
imports.

The sources are found by following `import` statements inside this package, so an edit of the translator
invalidates translations and leaves every other action alone.
"""

from __future__ import annotations

import ast
import importlib.metadata
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

from tilebuild.action import Tool
from tilebuild.toolchain.memory import memory

_PACKAGE = "tilebuild"
_ROOT = Path(__file__).resolve().parents[1]
#: Import names of the distributions that tools use, where the two differ.
_DISTRIBUTIONS = {"cuda": "cuda-tile"}
#: What a module may need besides Python: texts that it reads from its own folder.
_DATA_SUFFIXES = (".rs", ".j2", ".txt", ".json", ".toml")


def tool(name: str) -> Tool:
    """Raises KeyError if there is no tool of this name."""
    module = f"{_PACKAGE}.tools.{name}"
    if not name.isidentifier() or name.startswith("__") or not _file(module):
        raise KeyError(name)
    return Tool(name, digest(module), module=module)


@cache
def digest(module: str) -> str:
    """In hex; of the module, all of this package that it imports, and the versions of the rest."""
    modules, foreign = _closure(module)
    state = sha256(f"python {sys.version_info.major}.{sys.version_info.minor}\n".encode())
    for name in sorted(modules):
        for path in _files_of(name):
            state.update(f"{path.relative_to(_ROOT)} {memory.digest(path)}\n".encode())
    for name in sorted(foreign):
        state.update(f"{name} {_version(name)}\n".encode())
    return state.hexdigest()


def _closure(module: str) -> tuple[set[str], set[str]]:
    """Modules of this package and top-level names of others that `module` imports, directly or not."""
    seen: set[str] = set()
    foreign: set[str] = set()
    pending = [module]
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        path = _file(name)
        assert path is not None, name
        pending += _parents(name)
        for imported in _imports(path):
            if imported.split(".")[0] != _PACKAGE:
                foreign.add(imported.split(".")[0])
            elif _file(imported):
                pending.append(imported)
    return seen, {name for name in foreign if name not in sys.stdlib_module_names}


def _parents(name: str) -> Iterator[str]:
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def _file(module: str) -> Path | None:
    base = _ROOT.joinpath(*module.split(".")[1:])
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def _files_of(module: str) -> list[Path]:
    path = _file(module)
    assert path is not None, module
    if path.name != "__init__.py" or path.parent == _ROOT:
        return [path]
    return [path, *sorted(p for p in path.parent.iterdir() if p.suffix in _DATA_SUFFIXES)]


def _imports(path: Path) -> list[str]:
    """Dotted names that the file imports anywhere; `from a import b` counts as `a` and `a.b`."""
    known = memory.facts(path)
    if known is not None:
        return list(known)
    found = sorted(set(_imported_names(ast.walk(ast.parse(path.read_bytes())))))
    memory.remember(path, found)
    return found


def _imported_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _version(import_name: str) -> str:
    try:
        return importlib.metadata.version(_DISTRIBUTIONS.get(import_name, import_name))
    except importlib.metadata.PackageNotFoundError:
        return "absent"
