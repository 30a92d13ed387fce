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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, ClassVar, NoReturn

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


class StandIn:
    """Stands for something of an undeclared module; `name` is its dotted path.

    It is false, empty and equal to nothing but itself, and never becomes a number, so that no value of an
    undeclared module can reach a kernel. `on_read` is called instead while a kernel is compiled.
    """

    on_read: ClassVar[Callable[[str], NoReturn] | None] = None

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_stand_in_name", name)

    def _derive(self, suffix: str) -> StandIn:
        _note_read(self)
        return StandIn(stand_in_name(self) + suffix)

    def __getattr__(self, name: str) -> Any:
        if name in ("__all__", "__path__"):
            return []
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self._derive("." + name)

    def __setattr__(self, name: str, value: object) -> None:
        """Forgotten."""

    def __call__(self, *args: object, **kwargs: object) -> StandIn:
        return self._derive("()")

    def __getitem__(self, key: object) -> StandIn:
        return self._derive("[…]")

    def __setitem__(self, key: object, value: object) -> None:
        """Forgotten."""

    def __enter__(self) -> StandIn:
        return self._derive("()")

    def __exit__(self, *details: object) -> None:
        """Lets an exception through."""

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return ()

    def __iter__(self) -> Iterator[object]:
        _note_read(self)
        return iter(())

    def __len__(self) -> int:
        _note_read(self)
        return 0

    def __contains__(self, item: object) -> bool:
        _note_read(self)
        return False

    def __bool__(self) -> bool:
        _note_read(self)
        return False

    def __instancecheck__(self, instance: object) -> bool:
        return False

    def __subclasscheck__(self, subclass: type) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        if isinstance(
            other, bool | int | float | str
        ):  # the compiler asks whether it is this or that function
            _note_read(self)
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<stand-in for {stand_in_name(self)}>"

    def __index__(self) -> int:
        raise TypeError(f"`{stand_in_name(self)}` is not among the declared sources, so it has no value")

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def _operate(self, *others: object) -> StandIn:
        return self._derive("")

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """How code that looks at a value's type finds out, in the end, what it is."""
        _note_read(self)
        return StandIn


_BINARY = (
    "add",
    "sub",
    "mul",
    "matmul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "lshift",
    "rshift",
    "and",
    "or",
    "xor",
)
_OTHERS = ("lt", "le", "gt", "ge", "neg", "pos", "invert", "abs")
for _operator in (*_BINARY, *(f"r{name}" for name in _BINARY), *_OTHERS):
    setattr(StandIn, f"__{_operator}__", StandIn._operate)


def stand_in_name(stand_in: StandIn) -> str:
    name = object.__getattribute__(stand_in, "_stand_in_name")
    assert type(name) is str
    return name


def _note_read(stand_in: StandIn) -> None:
    if StandIn.on_read is not None:
        StandIn.on_read(stand_in_name(stand_in))


@contextmanager
def refusing_reads(refuse: Callable[[str], NoReturn]) -> Iterator[None]:
    """While this holds, whoever looks at a stand-in gets what `refuse` raises; it is told the dotted path."""
    StandIn.on_read = refuse
    try:
        yield
    finally:
        StandIn.on_read = None


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
        if not isinstance(module, ModuleType) or getattr(module, "__file__", None) != str(self.root / path):
            return self._run(name, self.root / path, is_package=False)
        return module

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
        if not fromlist:
            module = self._load(full)
            return self._load(full.split(".")[0]) if level == 0 else module
        module = self._load(full)
        for item in fromlist:
            if item != "*" and full in self._modules and not _has(module, item):
                setattr(module, item, self._load(f"{full}.{item}"))
        return module

    def _load(self, name: str) -> Any:
        """The module `name`: declared, real, or a stand-in."""
        if name in self._modules:
            return self._modules[name]
        if (found := self._find(name)) is not None:
            return self._load_declared(name, *found)
        if name == "cuda":
            importlib.import_module(_TILE)
            return sys.modules["cuda"]
        if name == _TILE or name.startswith(_TILE + ".") or name.split(".")[0] in PURE_MODULES:
            return importlib.import_module(name)
        return StandIn(name)

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

    def _load_declared(self, name: str, file: Path | None, is_package: bool) -> ModuleType:
        parent, _, last = name.rpartition(".")
        above = self._load(parent) if parent else None
        module = self._modules.get(name)  # the parent may have imported it
        if module is None:
            module = self._run(name, file, is_package) if file else self._open_package(name)
        if isinstance(above, ModuleType):
            setattr(above, last, module)
        return module

    def _open_package(self, name: str) -> ModuleType:
        """A folder of declared sources whose own `__init__.py` is not declared: what it would hold is
        stand-ins."""
        module = ModuleType(name)
        module.__path__ = []
        module.__package__ = name
        module.__dict__["__getattr__"] = lambda item: _stand_in_attribute(name, item)
        self._modules[name] = module
        return module

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


def _has(module: Any, item: str) -> bool:
    return item in vars(module)


def _stand_in_attribute(package: str, item: str) -> object:
    if item.startswith("__") and item.endswith("__"):
        raise AttributeError(item)
    return StandIn(f"{package}.{item}")
