"""The timing protocol: rounds of Python, Python again and Rust on freshly loaded modules. Knows no driver.

A trial loads all three anew. Short kernels are timed as a replay of a graph of many launches, which is
twenty times quieter than single launches; long ones one launch at a time. The second-level cache is flushed
before every timing. In the end each kernel that was timed runs once more and must give what it gave before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

from tilebuild.gpu.check import Loaded, SideResult, same_bits
from tilebuild.gpu.device import Clocks, Device
from tilebuild.gpu.elements import POISONS
from tilebuild.gpu.memory import Memory
from tilebuild.gpu.plan import SIDES, PlannedCase, SideName
from tilebuild.paired import figures

TRIALS = 10
ROUNDS = 12
#: In the order of a round's times.
VARIANTS: tuple[SideName, ...] = ("python", "python", "rust")
#: Kernels below this are timed by graph replay.
_GRAPH_BELOW_NS = 1_000_000
_REPLAY_NS = 1_000_000
_MOST_LAUNCHES = 200
_LEAST_LAUNCHES = 5
#: Reasons for which clocks differ from one moment to the next; a steady power limit is none.
_UNSTEADY = ("hardware slowdown", "hardware thermal", "software thermal", "hardware power brake")


def measure(
    device: Device, folder: Path, case: PlannedCase, memory: Memory, results: Mapping[SideName, SideResult]
) -> dict[str, Any]:
    """The row of the benchmark without names and keys."""
    repetitions = _repetitions(device, folder, case, memory)
    times, readings, unchanged = [], [], dict.fromkeys(SIDES, True)
    for trial in range(TRIALS):
        order = Random(f"{case.name}/{trial}")
        with ExitStack() as stack:
            loaded = [stack.enter_context(Loaded(device, folder, case, v, memory)) for v in VARIANTS]
            times.append(_trial(device, memory, loaded, repetitions, order))
            readings.append(device.clocks())
            for variant, kernels in zip(VARIANTS, loaded, strict=True):
                unchanged[variant] &= _unchanged(device, memory, kernels, results[variant])
    return {
        "method": "graph" if repetitions else "single",
        "repetitions": max(repetitions, 1),
        "times": times,
        "figures": figures(times).to_json(),
        "clocks": _clocks(readings),
        "recheck": unchanged,
    }


def _repetitions(device: Device, folder: Path, case: PlannedCase, memory: Memory) -> int:
    """How many launches a graph holds, or 0 for timing single launches."""
    with Loaded(device, folder, case, "python", memory) as loaded:
        memory.restore(POISONS[0])
        device.launch(loaded.launches)
        once = min(device.time_once(loaded.launches) for _ in range(3))
    if once >= _GRAPH_BELOW_NS:
        return 0
    return max(_LEAST_LAUNCHES, min(_MOST_LAUNCHES, ceil(_REPLAY_NS / max(once, 1.0))))


def _trial(
    device: Device, memory: Memory, loaded: list[Loaded], repetitions: int, order: Random
) -> list[list[float]]:
    """The times of one launch of each variant, per round, in nanoseconds."""
    clocks: list[Callable[[], float]] = []
    for kernels in loaded:
        device.launch(kernels.launches)
        if repetitions:
            graph = device.capture(kernels.launches, repetitions)
            clocks.append(partial(device.time_graph, graph))
        else:
            clocks.append(partial(device.time_once, kernels.launches))
    for clock in clocks:
        clock()  # the first replay uploads the graph
    rounds = []
    restored = any(array.role == "inout" for array in memory.case.arrays.values())
    for _ in range(ROUNDS):
        times = [0.0] * len(clocks)
        for variant in order.sample(range(len(clocks)), len(clocks)):
            if restored:
                memory.restore(POISONS[0])
            times[variant] = round(clocks[variant]() / max(repetitions, 1), 1)
        rounds.append(times)
    return rounds


def _unchanged(device: Device, memory: Memory, kernels: Loaded, before: SideResult) -> bool:
    """Whether the kernels still give what they gave when they were tested; results that never repeat pass."""
    memory.restore(POISONS[1])
    device.launch(kernels.launches)
    if memory.changes(POISONS[1]) != before.changes:
        return False
    return all(
        same_bits(device, memory.stored(name), second) or not same_bits(device, first, second)
        for name, (first, second) in before.stored.items()
    )


def _clocks(readings: list[Clocks]) -> dict[str, Any]:
    speeds = [reading.sm_mhz for reading in readings]
    reasons = sorted({reason for reading in readings for reason in reading.reasons})
    return {
        "sm_mhz": [min(speeds), max(speeds)],
        "temperature": max(reading.temperature for reading in readings),
        "power_watts": max(reading.power_watts for reading in readings),
        "limited_by": reasons,
        "throttled": [reason for reason in reasons if reason in _UNSTEADY],
    }
