"""The correctness protocol: both sides of a case against the reference and against each other. Knows no
driver.

Each side runs twice, over memory poisoned in two different ways: an element that keeps both poisons was
never written, and a result that depends on what lay in memory before differs. What no kernel may write is
compared with what it was. Controls show that the comparison would notice: doing nothing and writing zeros
must both fail.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tilebuild.bound import Bound, Worst, bound_for, farthest
from tilebuild.gpu.arguments import pack
from tilebuild.gpu.device import Device, DeviceError, Launch
from tilebuild.gpu.elements import POISONS, exact, is_float
from tilebuild.gpu.memory import Changes, Memory
from tilebuild.gpu.plan import SIDES, PlannedCase, SideName


class CaseProblem(Exception):
    """A case that cannot be judged: a reference that raises, an output of another shape."""


@dataclass(frozen=True)
class SideResult:
    """What one side left in memory: the stored elements of each output after each of the two runs."""

    stored: Mapping[str, tuple[Any, Any]]
    changes: Changes


class Loaded:
    """The kernels of one side of a case, freshly loaded; a context manager that unloads them."""

    def __init__(
        self, device: Device, folder: Path, case: PlannedCase, side: SideName, memory: Memory
    ) -> None:
        self._device = device
        addresses = memory.addresses()
        self.launches: list[Launch] = []
        for step in case.steps:
            program = step.side(side)
            tables = memory.tables(step)
            kernel = device.load((folder / program.cubin).read_bytes(), program.symbol)
            arguments = tuple(pack(slot, addresses, tables) for slot in program.slots)
            self.launches.append(Launch(kernel, step.grid, arguments))

    def __enter__(self) -> Loaded:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, DeviceError):
            return  # the device may be past unloading, and the first error is the one to tell
        for launch in self.launches:
            self._device.unload(launch.kernel)


def run_side(device: Device, memory: Memory, loaded: Loaded) -> SideResult:
    """Both runs of one side."""
    names = memory.case.outputs
    runs, guards, inputs = [], 0, dict[str, None]()
    for poison in POISONS:
        memory.restore(poison)
        device.launch(loaded.launches)
        runs.append({name: memory.stored(name) for name in names})
        changes = memory.changes(poison)
        guards = max(guards, changes.guard_bytes)
        inputs |= dict.fromkeys(changes.inputs)
    stored = {name: (runs[0][name], runs[1][name]) for name in names}
    return SideResult(stored, Changes(guards, tuple(inputs)))


def check(
    device: Device, folder: Path, case: PlannedCase
) -> tuple[dict[str, Any], Memory, dict[SideName, SideResult]]:
    """The row of the test without names and keys; the memory and the results, for a benchmark to compare
    with.
    """
    memory = Memory(device, case, given_inputs(device, folder, case))
    results: dict[SideName, SideResult] = {}
    for side in SIDES:
        with Loaded(device, folder, case, side, memory) as loaded:
            results[side] = run_side(device, memory, loaded)
    wanted = _Wanted(device, folder, case, memory, results["python"])
    outputs = [_output(device, memory, wanted, name, results) for name in case.outputs]
    return (
        {
            "identical": case.identical,
            "reference": case.reference is not None,
            "outputs": outputs,
            "controls": _controls(device, memory, wanted),
            "memory": {side: results[side].changes.to_json() for side in SIDES},
        },
        memory,
        results,
    )


def same_bits(device: Device, first: Any, second: Any) -> bool:
    """Whether two arrays of stored elements are equal, NaNs by their bits."""
    word = f"uint{8 * first.dtype.itemsize}"
    return bool((first.view(word) == second.view(word)).all())


class _Wanted:
    """What each output should be, how large the sums behind it are, and how far it may be off."""

    def __init__(
        self, device: Device, folder: Path, case: PlannedCase, memory: Memory, python: SideResult
    ) -> None:
        self._device, self._case = device, case
        xp = device.xp
        self.want: dict[str, Any] = {}
        self.magnitude: dict[str, Any] = {}
        self.bound: dict[str, Bound] = {}
        shapes = [array.shape for array in case.arrays.values() if array.read]
        plain = self._reference(folder, memory, absolute=False, python=python)
        large = self._reference(folder, memory, absolute=True, python=python)
        for name in case.outputs:
            array = case.arrays[name]
            want = self._numbers(name, plain[name])
            self.want[name] = want
            if is_float(array.dtype):
                sums = xp.abs(self._numbers(name, large[name]))
                # A reference of absolute values may cancel or overflow; the result itself is a lower bound.
                usable = xp.where(xp.isfinite(sums), sums, 0.0)
                finite = xp.where(xp.isfinite(want), xp.abs(want), 0.0)
                self.magnitude[name] = xp.maximum(usable, finite)
            else:
                self.magnitude[name] = xp.zeros(array.shape)
            overrides = case.bounds if case.reference is not None else {"c": 0.0, "L": 1}
            self.bound[name] = bound_for(array.dtype, shapes, array.shape, overrides)

    def farthest(self, name: str, stored: Any) -> Worst:
        got = exact(self._device.xp, stored, self._case.arrays[name].dtype)
        return farthest(self._device.xp, got, self.want[name], self.magnitude[name], self.bound[name])

    def _numbers(self, name: str, value: Any) -> Any:
        """A result of the reference as numbers to compare, in the shape of the output."""
        xp, array = self._device.xp, self._case.arrays[name]
        numbers = xp.asarray(value)
        if tuple(numbers.shape) != array.shape:
            shape = tuple(numbers.shape)
            raise CaseProblem(f"the reference gives {name} the shape {shape}, the case has {array.shape}")
        if is_float(array.dtype):
            return numbers.astype(xp.float64)
        return numbers if numbers.dtype.kind in "iu" else numbers.astype(xp.int64)

    def _reference(
        self, folder: Path, memory: Memory, absolute: bool, python: SideResult
    ) -> Mapping[str, Any]:
        case, xp = self._case, self._device.xp
        if case.reference is None:
            return {name: exact(xp, python.stored[name][0], case.arrays[name].dtype) for name in case.outputs}
        function = load_function(folder / case.reference.file, case.reference.function)
        given = _accepted(function, _keywords(case, memory, xp, absolute))
        try:
            values = function(xp, **given)
        except Exception as error:
            raise CaseProblem(f"the reference raised {type(error).__name__}: {error}") from error
        listed = values if isinstance(values, tuple | list) else (values,)
        if len(listed) != len(case.outputs):
            raise CaseProblem(f"the reference returns {len(listed)} arrays, the case has {len(case.outputs)}")
        return dict(zip(case.outputs, listed, strict=True))


def given_inputs(device: Device, folder: Path, case: PlannedCase) -> Mapping[str, Any]:
    """The arrays that the target's own `make` gives. It sees the case's name, seed and arrays."""
    if case.inputs is None:
        return {}
    function = load_function(folder / case.inputs, "make")
    facts = SimpleNamespace(name=case.name, seed=case.seed, arrays=case.arrays)
    try:
        made = dict(function(device.xp, facts, case.seed))
    except Exception as error:
        raise CaseProblem(f"{case.inputs}: make raised {type(error).__name__}: {error}") from error
    if unknown := set(made) - set(case.arrays):
        raise CaseProblem(f"{case.inputs}: make gives {', '.join(sorted(unknown))}, which the case lacks")
    return made


def load_function(path: Path, name: str) -> Callable[..., Any]:
    """A function of a Python file. Raises `CaseProblem`."""
    namespace: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
    except Exception as error:
        raise CaseProblem(f"{path.name}: {type(error).__name__}: {error}") from error
    if not callable(namespace.get(name)):
        raise CaseProblem(f"{path.name} has no function {name!r}")
    function: Callable[..., Any] = namespace[name]
    return function


def _keywords(case: PlannedCase, memory: Memory, xp: Any, absolute: bool) -> dict[str, Any]:
    """Everything a reference may ask for: inputs and numbers by parameter name, arrays of a case by
    their own.
    """

    def number(value: Any) -> Any:
        return abs(value) if absolute and isinstance(value, float) else value

    def array(name: str) -> Any:
        values = memory.inputs(name)
        return xp.abs(values) if absolute and values.dtype.kind == "f" else values

    if len(case.steps) > 1:
        found = {name: array(name) for name in case.arrays if case.readable(name)}
        return found | _agreed_numbers(case, number)
    found = {}
    for keyword, argument in case.steps[0].keywords.items():
        match argument:
            case {"array": name}:
                if case.readable(name):
                    found[keyword] = array(name)
            case {"arrays": names}:
                found[keyword] = [array(name) for name in names]
            case _:
                found[keyword] = number(argument)
    return found


def _agreed_numbers(case: PlannedCase, number: Callable[[Any], Any]) -> dict[str, Any]:
    """Scalars and constants by the kernels' names, where all steps agree on the value."""
    found: dict[str, list[Any]] = {}
    for step in case.steps:
        for keyword, argument in step.keywords.items():
            if not isinstance(argument, Mapping):
                found.setdefault(keyword, []).append(argument)
    return {name: number(values[0]) for name, values in found.items() if len(set(map(repr, values))) == 1}


def _accepted(function: Callable[..., Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords that a function takes. Raises `CaseProblem` for one that it needs and nobody has."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return dict(keywords)
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in keywords]
    if missing:
        raise CaseProblem(f"the reference asks for {', '.join(missing)}; there is {', '.join(keywords)}")
    return {p.name: keywords[p.name] for p in parameters if p.name in keywords}


def _output(
    device: Device, memory: Memory, wanted: _Wanted, name: str, results: Mapping[SideName, SideResult]
) -> dict[str, Any]:
    array = memory.case.arrays[name]
    row: dict[str, Any] = {
        "array": name,
        "dtype": array.dtype,
        "elements": array.size,
        "bound": wanted.bound[name].to_json(),
    }
    for side in SIDES:
        first, second = results[side].stored[name]
        row[side] = {
            "sha256": sha256(device.host(first).tobytes()).hexdigest(),
            "repeats": same_bits(device, first, second),
            "unwritten": memory.unwritten(name, first, second),
            "worst": wanted.farthest(name, first).to_json(),
        }
    return row


def _controls(device: Device, memory: Memory, wanted: _Wanted) -> dict[str, Any]:
    """What the comparison says of a kernel that does nothing, and of one that writes zeros."""
    memory.restore(POISONS[0])
    left: Sequence[tuple[str, Any]] = [(name, memory.stored(name)) for name in memory.case.outputs]
    return {
        "null": {name: wanted.farthest(name, stored).to_json() for name, stored in left},
        "zero": {
            name: wanted.farthest(name, device.xp.zeros_like(stored)).to_json() for name, stored in left
        },
    }
