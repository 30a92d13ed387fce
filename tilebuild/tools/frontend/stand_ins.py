"""What stands for the modules that no declared source provides: inert objects. Knows neither files nor
kernels."""

from __future__ import annotations

import sys
from abc import ABCMeta
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MappingProxyType, ModuleType
from typing import Any, ClassVar, NoReturn

#: Element types that cuda.tile accepts under another module's name. They mean the same in every version, so a
#: kernel may mention them without the module.
_DTYPES = {
    "bool_": ("bool",),
    "int8": ("int8",),
    "int16": ("int16", "short"),
    "int32": ("int32", "int"),
    "int64": ("int64", "long"),
    "uint8": ("uint8",),
    "uint16": ("uint16",),
    "uint32": ("uint32",),
    "uint64": ("uint64",),
    "float16": ("float16", "half"),
    "bfloat16": ("bfloat16",),
    "float32": ("float32", "float"),
    "float64": ("float64", "double"),
    "float8_e4m3fn": ("float8_e4m3fn",),
    "float8_e5m2": ("float8_e5m2",),
    "float8_e8m0fnu": ("float8_e8m0fnu",),
}
_TORCH = {f"torch.{name}": dtype for dtype, names in _DTYPES.items() for name in names}
_NOT_NUMPY = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")
#: NumPy's can be called too, which only a kernel can do with cuda.tile's.
_NUMPY = {f"numpy.{dtype}": dtype for dtype in _DTYPES if dtype not in _NOT_NUMPY}


#: A file that asks the environment at import time gets its own default: no variable is set.
_EMPTY_ENVIRONMENT: dict[str, object] = {
    "os.environ": MappingProxyType({}),
    "os.getenv": lambda name, default=None: default,
}


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
        return (_InertBase,)

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


class _InertClass(ABCMeta):
    """The class of classes that derive from a stand-in; what they do not define is a stand-in."""

    def __getattr__(cls, name: str) -> StandIn:
        return _inherited(cls, name)


class _InertBase(metaclass=_InertClass):
    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def __init_subclass__(cls, **kwargs: object) -> None:
        pass

    def __getattr__(self, name: str) -> StandIn:
        return _inherited(type(self), name)


def _inherited(cls: type, name: str) -> StandIn:
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    return StandIn(f"{cls.__name__}.{name}")


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


def stand_in_module(name: str) -> ModuleType:
    """A module of which every attribute is a stand-in; declared submodules may be set on it."""
    module = ModuleType(name)
    module.__path__ = []
    module.__package__ = name
    module.__dict__["__getattr__"] = lambda item: _attribute(f"{name}.{item}", item)
    return module


def _attribute(path: str, item: str) -> object:
    if item.startswith("__") and item.endswith("__"):
        raise AttributeError(item)
    if path in _EMPTY_ENVIRONMENT and StandIn.on_read is None:
        return _EMPTY_ENVIRONMENT[path]
    dtype = _TORCH.get(path) or (_NUMPY.get(path) if StandIn.on_read is not None else None)
    if dtype is not None and "cuda.tile" in sys.modules:
        return getattr(sys.modules["cuda.tile"], dtype)
    return StandIn(path)
