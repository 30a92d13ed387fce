"""Imports kernel files from declared sources only. Knows nothing of kernels, signatures or cuda.tile's
inside.

The declared sources lie in one folder under their import paths. Whatever else they import is one of three
things: cuda.tile, a module of the standard library that neither reads nor depends on the machine, or a
*stand-in*: an inert object of which every attribute, call and decoration gives another one, even when the
real module is installed. So what a file means depends on declared sources only.

Only the code of declared sources sees this: their modules get an `__import__` of their own, and `sys.modules`
is left as it was.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tilebuild.tools.frontend.stand_ins import stand_in_module

#: What a kernel file may import for real: nothing here reads files, clocks, the environment or random
#: numbers.
PURE_MODULES = frozenset(
    {
        "__future__",
        "abc",
        "bisect",
        "builtins",
        "cmath",
        "collections",
        "contextlib",
        "copy",
        "dataclasses",
        "decimal",
        "enum",
        "fractions",
        "functools",
        "heapq",
        "inspect",
        "itertools",
        "keyword",
        "math",
        "numbers",
        "operator",
        "re",
        "statistics",
        "string",
        "struct",
        "textwrap",
        "types",
        "typing",
        "warnings",
    }
)
_TILE = "cuda.tile"
_TILE_PARENT = "cuda"


class Sources:
    """The declared sources of one action: every `.py` file under `root`, by its import path.

    The folder of the main file is searched too, after the root, as Python does for a script.
    """

    def __init__(self, root: Path, main: str) -> None:
        self.root = root
        self._searched = [root, *([(root / main).parent] if "/" in main else [])]
        self._modules: dict[str, ModuleType] = {}
        self._builtins: dict[str, Any] = {**vars(builtins), "__import__": self._import}
        self._registered: list[str] = []

    def load_file(self, path: str) -> ModuleType:
        """Runs the file `path` (relative to the root) as the module its path names. Raises what the file
        raises."""
        parts = list(Path(path).with_suffix("").parts)
        if parts[-1] == "__init__" and len(parts) > 1:
            parts.pop()
        name = ".".join(parts)
        module = self._load(name)
        if getattr(module, "__file__", None) == str(self.root / path):
            return module
        return self._run(name, self.root / path, is_package=False)  # the file hides behind a package

    def owns(self, path: str) -> bool:
        return Path(path).is_relative_to(self.root)

    def relative(self, path: str) -> str:
        """The declared name of a file given by its absolute path; a file of a library keeps its last two
        parts."""
        if self.owns(path):
            return str(Path(path).relative_to(self.root))
        return "/".join(Path(path).parts[-2:])

    def close(self) -> None:
        """Leaves `sys.modules` as it was."""
        for name in self._registered:
            sys.modules.pop(name, None)

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: object = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        full = _absolute(name, globals or {}, level)
        module = self._load(full)
        if not fromlist:
            return module if level else self._load(full.split(".")[0])
        if full not in self._modules:
            return builtins.__import__(full, fromlist=fromlist)  # the standard library or cuda.tile
        for item in fromlist:
            if item not in vars(module) and self._find(f"{full}.{item}") is not None:
                self._load(f"{full}.{item}")
        return module

    def _load(self, name: str) -> ModuleType:
        """The module `name`: declared, real, or a stand-in."""
        if name in self._modules:
            return self._modules[name]
        file, is_package = self._find(name) or (None, True)
        if file is None and _is_real(name):
            return importlib.import_module(name)
        return self._load_own(name, file, is_package)

    def _find(self, name: str) -> tuple[Path | None, bool] | None:
        """The file of a declared module and whether it is a package; a package without a file has None."""
        tail = Path(*name.split("."))
        for folder in self._searched:
            if (package := folder / tail / "__init__.py").is_file():
                return package, True
            if (file := folder / tail.with_suffix(".py")).is_file():
                return file, False
        for folder in self._searched:
            if (folder / tail).is_dir() and next((folder / tail).rglob("*.py"), None) is not None:
                return None, True
        return None

    def _load_own(self, name: str, file: Path | None, is_package: bool) -> ModuleType:
        """A declared module, or one that stands for an undeclared module or for a folder of declared ones."""
        parent, _, last = name.rpartition(".")
        above = self._load(parent) if parent else None
        if name not in self._modules:  # else the parent has imported it
            if file is None:
                self._modules[name] = stand_in_module(name)
                if name == _TILE_PARENT:
                    self._load(_TILE)
                    vars(self._modules[name])["tile"] = sys.modules[_TILE]
            else:
                self._run(name, file, is_package)
        if above is not None and parent in self._modules:
            setattr(above, last, self._modules[name])
        return self._modules[name]

    def _run(self, name: str, file: Path, is_package: bool) -> ModuleType:
        module = ModuleType(name)
        module.__file__ = str(file)
        module.__package__ = name if is_package else name.rpartition(".")[0]
        if is_package:
            module.__path__ = []
        module.__dict__["__builtins__"] = self._builtins
        self._modules[name] = module
        if name not in sys.modules:  # `dataclasses` and `typing` look up the module of a class there
            sys.modules[name] = module
            self._registered.append(name)
        exec(_compiled(file), module.__dict__)
        return module


def _compiled(file: Path) -> CodeType:
    return compile(file.read_bytes(), str(file), "exec", dont_inherit=True)


def _absolute(name: str, importing: Mapping[str, Any], level: int) -> str:
    if level == 0:
        return name
    package = importing.get("__package__") or ""
    parts = package.split(".") if package else []
    if level > len(parts):
        raise ImportError("attempted relative import beyond the top-level package")
    base = parts[: len(parts) - level + 1]
    return ".".join([*base, name] if name else base)


def _is_real(name: str) -> bool:
    return name == _TILE or name.startswith(_TILE + ".") or name.split(".")[0] in PURE_MODULES
