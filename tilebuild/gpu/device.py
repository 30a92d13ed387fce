"""What the protocols need of a GPU. Knows no driver: `cuda_device.py` is one, a test has another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol


class DeviceError(Exception):
    """The driver refused something. After some errors nothing on the device works any more: `fatal`."""

    def __init__(self, fact: str, fatal: bool = False) -> None:
        super().__init__(fact)
        self.fatal = fatal


@dataclass(frozen=True)
class Launch:
    """A loaded kernel, its grid and the bytes of its arguments."""

    kernel: Any
    grid: tuple[int, int, int]
    arguments: tuple[bytes, ...]


@dataclass(frozen=True)
class Clocks:
    """A reading while the device is at work."""

    sm_mhz: int
    temperature: int
    power_watts: int
    reasons: tuple[str, ...]


class Device(Protocol):
    """A device, and the array library whose arrays lie in its memory."""

    @property
    def xp(self) -> ModuleType:
        """`cupy`, or a module like it."""

    @property
    def device_class(self) -> Mapping[str, Any]:
        """Compute capability, product name, number of multiprocessors."""

    @property
    def observed(self) -> Mapping[str, Any]:
        """Versions of what is installed: recorded, never part of a key."""

    def address(self, array: Any) -> int:
        """Where the first byte of an array lies."""

    def host(self, array: Any) -> Any:
        """The array as a NumPy array."""

    def load(self, cubin: bytes, symbol: str) -> Any:
        """Loads a module of its own and returns its kernel."""

    def unload(self, kernel: Any) -> None:
        """Unloads the kernel's module."""

    def launch(self, launches: Sequence[Launch]) -> None:
        """Runs launches in order and waits for them."""

    def capture(self, launches: Sequence[Launch], repetitions: int) -> Any:
        """A graph of the launches in order, repeated."""

    def time_once(self, launches: Sequence[Launch]) -> float:
        """Nanoseconds of the launches on the device, with a cold second-level cache."""

    def time_graph(self, graph: Any) -> float:
        """Nanoseconds of a replay on the device, from a cold second-level cache on."""

    def clocks(self) -> Clocks:
        """What the device runs at now."""
