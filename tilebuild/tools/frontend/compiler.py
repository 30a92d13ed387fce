"""Runs cuda.tile's compiler and records what it knows of each value and operation. The only place that
touches cuda.tile's private names; `tests/tools/test_frontend_compiler.py` says what to do when one of them
moves.

The byte code is asked for without debug information, so two clones of a workspace, an added comment and a
renamed local give the same bytes. Names, element types and places are recorded beside it, in the numbering of
`tilebuild.tileir.tree`: a value gets its number when the byte code builder makes it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from cuda.tile import _compile, _ir2bytecode
from cuda.tile._bytecode.code_builder import CodeBuilder
from cuda.tile._exception import Loc
from cuda.tile._ir.core_ops import Assign
from cuda.tile._ir.ir import Builder
from cuda.tile.compilation import KernelSignature

BYTECODE_VERSION = "13.4"
#: How cuda.tile's options are called as hints of a Tile IR entry.
_HINT_NAMES = {
    "num_ctas": "num_cta_in_cga",
    "occupancy": "occupancy",
    "num_worker_warps": "num_worker_warps_per_cta",
    "opt_level": "opt_level",
}
_DEFAULT_OPT_LEVEL = 3
#: Local names that cuda.tile gives to values of its own.
_INVENTED = "$"


@dataclass
class Record:
    """Per value: its Python name and element type, or empty text. Per operation, in program order: its
    place."""

    names: list[str] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    places: list[Any] = field(default_factory=list)  # cuda.tile's Loc


@dataclass
class Compiled:
    bytecode: bytes
    record: Record


def compile_kernel(
    kernel: Any, signature: KernelSignature, arch: str, *, debug_information: bool = False
) -> Compiled:
    """The kernel for one signature. Raises the front end's own exceptions.

    With `debug_information` the byte code says where each operation comes from: to find a fault, not to keep.
    """
    recorder = _Recorder(debug_information)
    with recorder.listening():
        result = _compile.compile_tile(
            kernel._annotated_function,
            (signature,),
            sm_arch=arch,
            compiler_options=kernel._compiler_options,
            bytecode_version=_compile.parse_bytecode_version(BYTECODE_VERSION),
            return_bytecode=True,
            return_cubin=False,
        )
    assert result.bytecode is not None
    return Compiled(bytes(result.bytecode), recorder.record)


def entry_hints(kernel: Any, arch: str) -> dict[str, int]:
    """The hints that hold on `arch`, by their Tile IR names; only those that are set, in a fixed order."""
    by_target = kernel._compiler_options.hints_by_target()
    merged = {**by_target.get("default", {}), **by_target.get(arch, {})}
    hints = {_HINT_NAMES[name]: value for name, value in merged.items() if value is not None}
    if hints.get("opt_level") == _DEFAULT_OPT_LEVEL:
        del hints["opt_level"]
    return dict(sorted(hints.items()))


def current_place() -> Any:
    """Where in the kernel the compiler is (a Loc of cuda.tile)."""
    try:
        return Builder.get_current().loc
    except Exception:  # no builder is active
        return Loc.unknown()


def warm_up() -> None:
    """Compiles a small kernel, so that a process forked from this one finds everything imported and set
    up."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a second thread would make forking unsafe
    from tilebuild.tools.frontend import sample

    compile_kernel(sample.kernel, sample.signature(), "sm_90")


class _Recorder:
    """Listens to one compilation."""

    def __init__(self, debug_information: bool) -> None:
        self._debug_information = debug_information
        self.record = Record()
        self._numbers: dict[int, int] = {}  # id of a builder's value -> its number
        self._alive: list[object] = []  # the values, so that no id is used twice
        self._user_names: dict[str, str] = {}  # name of an IR variable -> the first Python name it was given
        self._place: Any = Loc.unknown()

    @contextmanager
    def listening(self) -> Iterator[None]:
        with ExitStack() as stack:
            for owner, name, wrapper in (
                (_compile, "_get_bytecode", self._choosing_debug_information),
                (_compile, "eliminate_assign_ops", self._noting_assignments),
                (CodeBuilder, "new_op", self._noting_operation),
                (CodeBuilder, "new_op_with_nested_blocks", self._noting_nested_operation),
                (CodeBuilder, "_make_value_tuple", self._noting_values),
                (_ir2bytecode.BytecodeContext, "set_value", self._noting_variable),
                (_ir2bytecode.BytecodeContext, "loc", self._noting_place),
            ):
                stack.enter_context(_replaced(owner, name, wrapper))
            yield

    def _choosing_debug_information(self, original: Any) -> Any:
        def get_bytecode(ir_keeper: Any, options: Any, *, anonymize_debug_info: bool) -> Any:
            return original(ir_keeper, options, anonymize_debug_info=not self._debug_information)

        return get_bytecode

    def _noting_assignments(self, original: Any) -> Any:
        """Python's `tile = ct.load(…)` is an operation of its own, which the compiler removes first."""

        def eliminate(root: Any) -> None:
            self._note_assignments(root)
            original(root)

        return eliminate

    def _note_assignments(self, root: Any) -> None:
        source: dict[str, str] = {}  # an assigned variable -> the variable that it renames
        for operation in root.traverse():
            if isinstance(operation, Assign):
                value = source.get(operation.value.name, operation.value.name)
                source[operation.result_var.name] = value
                name = operation.result_var.get_original_name()
                if not name.startswith(_INVENTED):
                    self._user_names.setdefault(value, name)

    def _noting_operation(self, original: Any) -> Any:
        def new_op(builder: Any, num_results: int | None = None) -> Any:
            self.record.places.append(self._place)
            result = original(builder, num_results)
            if num_results is None:
                self._note_value(result)  # a tuple of results passes through `_make_value_tuple`
            return result

        return new_op

    def _noting_nested_operation(self, original: Any) -> Any:
        def new_op_with_nested_blocks(builder: Any, *args: Any, **kwargs: Any) -> Any:
            self.record.places.append(self._place)
            return original(builder, *args, **kwargs)

        return new_op_with_nested_blocks

    def _noting_values(self, original: Any) -> Any:
        def make_value_tuple(builder: Any, length: int) -> Any:
            values = original(builder, length)
            for value in values:
                self._note_value(value)
            return values

        return make_value_tuple

    def _note_value(self, value: object) -> None:
        self._numbers[id(value)] = len(self._alive)
        self._alive.append(value)
        self.record.names.append("")
        self.record.dtypes.append("")

    def _noting_variable(self, original: Any) -> Any:
        def set_value(context: Any, variable: Any, value: object) -> None:
            original(context, variable, value)
            number = self._numbers[id(value)]
            if not self.record.names[number]:
                self.record.names[number] = self._user_name(variable)
            if not self.record.dtypes[number]:
                self.record.dtypes[number] = _dtype_name(variable.try_get_type())

        return set_value

    def _user_name(self, variable: Any) -> str:
        """The variable's own name; for one that the compiler invented, the name that Python gives its
        value."""
        original: str = variable.get_original_name()
        if not original.startswith(_INVENTED):
            return original
        return next((self._user_names[n] for n in (variable.name, original) if n in self._user_names), "")

    def _noting_place(self, original: Any) -> Any:
        @contextmanager
        def loc(context: Any, place: Any) -> Iterator[None]:
            outer, self._place = self._place, place
            try:
                with original(context, place):
                    yield
            finally:
                self._place = outer

        return loc


@contextmanager
def _replaced(owner: Any, name: str, wrapper: Any) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, wrapper(original))
    try:
        yield
    finally:
        setattr(owner, name, original)


def _dtype_name(type_: Any) -> str:
    """`float16`, `pointer[float16]`, …; empty for what has no element type of its own (tokens, views)."""
    dtype = getattr(type_, "dtype", None)
    return "" if dtype is None else str(dtype)
