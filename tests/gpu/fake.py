"""A device made of NumPy: kernels are Python functions that write to real addresses, so that wrong ones
do harm.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from tilebuild.gpu.cubin import read_entry
from tilebuild.gpu.device import Clocks, DeviceError, Launch

DEVICE_CLASS = {"compute_capability": "9.0", "name": "NVIDIA Fake", "sm_count": 4}


def fake_cubin(symbol: str, sizes: Sequence[int]) -> bytes:
    """An ELF file with nothing in it but the parameters of one entry."""
    info, at = b"", 0
    for position, size in enumerate(sizes):
        info += struct.pack("<BBHIHHI", 4, 0x17, 12, 0, position, at, size << 18)
        at += size
    names = b"\0.shstrtab\0.nv.info." + symbol.encode() + b"\0"
    header_bytes, entry_bytes = 64, 64
    names_at = header_bytes + len(info)
    table_at = names_at + len(names)
    sections = [(0, 0, 0, 0), (1, 3, names_at, len(names)), (11, 1, header_bytes, len(info))]
    table = b"".join(struct.pack("<IIQQQQIIQQ", n, k, 0, 0, o, s, 0, 0, 1, 0) for n, k, o, s in sections)
    header = b"\x7fELF" + bytes(36) + struct.pack("<Q", table_at) + bytes(10)
    header += struct.pack("<HHH", entry_bytes, len(sections), 1)
    return header.ljust(header_bytes, b"\0")[:header_bytes] + info + names + table


def at(address: int, dtype: str, count: int) -> Any:
    """`count` elements at an address, to read and to write."""
    size = count * np.dtype(dtype).itemsize
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(memory, dtype=dtype)


def numbers(arguments: Sequence[bytes], form: str) -> list[Any]:
    """Arguments by their struct letters: `Q` a pointer, `i` a 32-bit integer, `f` a float."""
    return [struct.unpack("<" + letter, data)[0] for letter, data in zip(form, arguments, strict=True)]


@dataclass
class FakeDevice:
    """`kernels` maps symbols to functions of (arguments, grid), `times` to nanoseconds of one launch."""

    kernels: Mapping[str, Callable[[Sequence[bytes], tuple[int, int, int]], None]]
    times: Mapping[str, float] = field(default_factory=dict)
    shift_per_load: Callable[[int], float] = lambda load: 1.0
    reasons: tuple[str, ...] = ()
    loads: int = 0
    loaded: int = 0
    device_class: Mapping[str, Any] = field(default_factory=lambda: DEVICE_CLASS)
    observed: Mapping[str, Any] = field(default_factory=lambda: {"driver": "fake"})

    @property
    def xp(self) -> ModuleType:
        return np

    def address(self, array: Any) -> int:
        return int(array.ctypes.data)

    def host(self, array: Any) -> Any:
        return array

    def load(self, cubin: bytes, symbol: str) -> Any:
        self.loads += 1
        self.loaded += 1
        return read_entry(cubin), symbol, self.shift_per_load(self.loads)

    def unload(self, kernel: Any) -> None:
        self.loaded -= 1

    def launch(self, launches: Sequence[Launch]) -> None:
        for launch in launches:
            entry, symbol, _ = launch.kernel
            if tuple(map(len, launch.arguments)) != entry.sizes:
                raise DeviceError(f"{symbol} takes {entry.sizes}")
            self.kernels[symbol](launch.arguments, launch.grid)

    def capture(self, launches: Sequence[Launch], repetitions: int) -> Any:
        return launches, repetitions

    def time_once(self, launches: Sequence[Launch]) -> float:
        self.launch(launches)
        return float(sum(self.times.get(x.kernel[1], 10_000.0) * x.kernel[2] for x in launches))

    def time_graph(self, graph: Any) -> float:
        launches, repetitions = graph
        return self.time_once(launches) * float(repetitions)

    def clocks(self) -> Clocks:
        return Clocks(1980, 40, 300, self.reasons)
