"""Calls what a user wrote beside a kernel: its reference and its inputs. Knows no interpreter and no device.

A reference is `def kernel(xp, *, …)`. It takes, by keyword and named as the kernel's parameters, those of
the inputs, scalars and constants that it asks for, and returns the outputs in order.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tilebuild import faults
from tilebuild.case import Array, ArrayList, Case, Const, Launch, Number
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError, Span, did_you_mean
from tilebuild.python_text import read_python
from tilebuild.tools import protocol
from tilebuild.tools.trial import shown_names

Names = Sequence[Sequence[str]]


def load_function(path: str, name: str) -> Callable[..., Any]:
    """A function of a Python file. Raises `DiagnosticError`."""
    module = ModuleType(Path(path).stem)
    module.__file__ = path
    try:
        exec(compile(read_python(path), path, "exec"), module.__dict__)
    except DiagnosticError:
        raise
    except (Exception, SystemExit) as error:
        raise _failed(path, error) from error
    function = getattr(module, name, None)
    if not callable(function):
        hint = did_you_mean(name, [key for key in vars(module) if not key.startswith("_")])
        raise DiagnosticError(
            Diagnostic(f"the file has no function {name!r}", Blame.KERNEL, Span(path), help=hint)
        )
    found: Callable[..., Any] = function
    return found


def make_inputs(path: str, xp: ModuleType, case: Case) -> Mapping[str, Any]:
    """The arrays that no recipe can express, from `make(xp, case, seed)`."""
    make = load_function(path, "make")
    try:
        made: Mapping[str, Any] = make(xp, case, case.seed)
    except (Exception, SystemExit) as error:
        raise _failed(path, error) from error
    unknown = [name for name in made if name not in case.arrays]
    if unknown:
        hint = did_you_mean(unknown[0], case.arrays)
        fact = f"make() returns {unknown[0]!r}, which is no array of the case {case.name!r}"
        raise DiagnosticError(Diagnostic(fact, Blame.KERNEL, Span(path), help=hint))
    return made


class Reference:
    """A reference, ready to be called for one case."""

    def __init__(self, path: str, xp: ModuleType, case: Case, operator: str, names: Names) -> None:
        """`names` are the parameters of the kernel of each step."""
        self._path, self._xp, self._case = path, xp, case
        lone = len(case.steps) == 1
        self._function = load_function(path, case.steps[0].kernel if lone else operator)
        self._arguments = _keywords(case, names)
        self._outputs = output_names(case)
        self._shown = shown_names(case, names)

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by the names that the case gives them."""
        values = {name: _value(argument, inputs) for name, argument in self._arguments.items()}
        wanted = _wanted(self._function, values)
        try:
            with np.errstate(all="ignore"):
                returned = self._function(self._xp, **wanted)
        except (Exception, SystemExit) as error:
            raise _failed(self._path, error) from error
        parts = returned if isinstance(returned, tuple) else (returned,)
        if len(parts) != len(self._outputs):
            outputs = ", ".join(self._shown[name] for name in self._outputs)
            fact = f"the reference returns {len(parts)} arrays, the case has the outputs {outputs}"
            raise DiagnosticError(Diagnostic(fact, Blame.KERNEL, self._span()))
        return {name: self._shaped(name, part) for name, part in zip(self._outputs, parts, strict=True)}

    def _shaped(self, name: str, part: Any) -> Any:
        array = self._xp.asarray(part)
        shape = self._case.arrays[name].shape
        if array.shape != shape:
            output = self._shown[name]
            fact = f"the reference returns shape {array.shape} for the output {output} of shape {shape}"
            raise DiagnosticError(Diagnostic(fact, Blame.KERNEL, self._span()))
        return array

    def _span(self) -> Span:
        code = getattr(self._function, "__code__", None)
        return Span(self._path, code.co_firstlineno) if code is not None else Span(self._path)


def output_names(case: Case) -> list[str]:
    """The outputs in the order in which a reference returns them."""
    return [name for name, array in case.arrays.items() if array.role in ("out", "inout")]


def magnitudes(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs without the signs of their floats; whole numbers are indices and lengths and stay."""
    return {n: np.abs(v) if v.dtype.kind not in "biu" else v for n, v in inputs.items()}


def _keywords(case: Case, names: Names) -> dict[str, Any]:
    """What a reference may ask for: arrays by the kernel's name in a lone launch and by their own in
    longer cases, scalars and constants by the kernel's name where all steps agree on the value."""
    keywords: dict[str, Any] = {} if len(case.steps) == 1 else {n: n for n in case.arrays}
    clashing = set()
    for step, parameters in zip(case.steps, names, strict=True):
        for name, argument in zip(parameters, step.args, strict=True):
            if len(case.steps) > 1 and isinstance(argument, str | ArrayList):
                continue
            if name in keywords and keywords[name] != argument:
                clashing.add(name)
            keywords[name] = argument
    readable = {n for n, a in keywords.items() if not isinstance(a, str) or _is_input(case, case.arrays[a])}
    return {n: a for n, a in keywords.items() if n in readable and n not in clashing}


def _is_input(case: Case, array: Array) -> bool:
    target = array if array.alias_of is None else case.arrays[array.alias_of]
    return target.role in ("in", "inout") or target.fill is not None


def _value(argument: Any, inputs: Mapping[str, Any]) -> Any:
    match argument:
        case str():
            return np.array(inputs[argument])  # a copy: a reference may work in place
        case ArrayList(arrays=names):
            return [np.array(inputs[name]) for name in names]
        case Const(value=value) | Number(value=value):
            return value
    return argument


def _wanted(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    kinds = inspect.signature(function).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in kinds):
        return dict(values)
    names = {parameter.name for parameter in kinds}
    return {name: value for name, value in values.items() if name in names}


def _failed(path: str, error: Exception | SystemExit) -> Exception:
    """An error of the user's file, at the line of that file where it came up; one of the machine as it is."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    line = frames[-1].lineno or 0 if frames else getattr(error, "lineno", 0) or 0
    fact = f"{type(error).__name__}: {error}"
    source = read_python(path).splitlines()
    found = Diagnostic(fact, Blame.KERNEL, Span(path, line)).with_source(source)
    if isinstance(error, FileNotFoundError | PermissionError):
        help = "it reads no files: put the values into it, or have `inputs` make them"
        return protocol.Unreadable(replace(found, help=help), str(error.filename))
    return error if isinstance(error, Exception) and faults.exit_code(error) else DiagnosticError(found)


def parameter_names(launch: Launch, interface: Mapping[str, Any]) -> list[str]:
    """The names of a kernel's parameters, in order."""
    return [str(parameter["name"]) for parameter in interface["parameters"]]
