"""A CUDA device: memory and streams by CuPy, modules and launches by the driver itself.

Cubins of tile kernels are launched with a block of one thread; the driver knows the real one from the
cubin. CuPy's own `RawModule` would cache modules and derive argument types; a trial needs modules loaded
anew and exact bytes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from types import ModuleType
from typing import Any

import cupy
import numpy as np

from tilebuild.gpu.cubin import CubinError, read_entry
from tilebuild.gpu.device import Clocks, DeviceError, Launch
from tilebuild.gpu.nvml import Monitor

#: Errors after which a process can do nothing more with its device.
_FATAL = {214, 700, 701, 702, 710, 713, 714, 715, 716, 717, 718, 719, 720, 721, 999}
_NANOSECONDS_PER_MS = 1e6
_FLUSH_FACTOR = 2


@dataclass(frozen=True)
class Kernel:
    """A function of a module of its own, and the sizes of its parameters."""

    module: ctypes.c_void_p
    function: ctypes.c_void_p
    symbol: str
    sizes: tuple[int, ...]


class CudaDevice:
    """The current device of this process."""

    def __init__(self) -> None:
        """Raises `DeviceError` on a machine without a usable GPU."""
        try:
            self._driver = ctypes.CDLL("libcuda.so.1")
            properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
            # The first array makes the primary context current, in which the driver then loads modules.
            self._flush = cupy.zeros(_FLUSH_FACTOR * properties["l2CacheSize"], dtype=cupy.uint8)
            self._monitor = Monitor(cupy.cuda.Device().pci_bus_id)
        except (OSError, cupy.cuda.runtime.CUDARuntimeError) as error:
            raise DeviceError(f"no usable GPU: {error}") from error
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._properties = properties

    @property
    def xp(self) -> ModuleType:
        library: ModuleType = cupy
        return library

    @cached_property
    def device_class(self) -> Mapping[str, Any]:
        properties = self._properties
        return {
            "compute_capability": f"{properties['major']}.{properties['minor']}",
            "name": properties["name"].decode(),
            "sm_count": properties["multiProcessorCount"],
        }

    @cached_property
    def observed(self) -> Mapping[str, Any]:
        return {
            "driver": self._monitor.driver_version(),
            "numpy": np.__version__,
            "cupy": cupy.__version__,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        }

    def address(self, array: Any) -> int:
        return int(array.data.ptr)

    def host(self, array: Any) -> Any:
        return cupy.asnumpy(array)

    def load(self, cubin: bytes, symbol: str) -> Kernel:
        entry = read_entry(cubin)
        if entry.symbol != symbol:
            raise CubinError(f"the cubin's entry is {entry.symbol}, the plan names {symbol}")
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), cubin)
        self._call("cuModuleGetFunction", ctypes.byref(function), module, symbol.encode())
        return Kernel(module, function, symbol, entry.sizes)

    def unload(self, kernel: Kernel) -> None:
        self._call("cuModuleUnload", kernel.module)

    def launch(self, launches: Sequence[Launch]) -> None:
        self._settle()
        self._enqueue_all(launches)
        self._synchronize(self._stream)

    def capture(self, launches: Sequence[Launch], repetitions: int) -> Any:
        self._settle()
        self._stream.begin_capture()
        try:
            for _ in range(repetitions):
                self._enqueue_all(launches)
        finally:
            graph = self._stream.end_capture()
        return graph

    def time_once(self, launches: Sequence[Launch]) -> float:
        return self._time(partial(self._enqueue_all, launches))

    def time_graph(self, graph: Any) -> float:
        return self._time(partial(graph.launch, self._stream))

    def clocks(self) -> Clocks:
        return self._monitor.read()

    def _time(self, work: Callable[[], object]) -> float:
        self._settle()
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        # The flush keeps the device busy until the host has enqueued what is timed.
        self._flush.data.memset_async(0, self._flush.nbytes, self._stream)
        begin.record(self._stream)
        work()
        end.record(self._stream)
        self._synchronize(end)
        return float(cupy.cuda.get_elapsed_time(begin, end)) * _NANOSECONDS_PER_MS

    def _enqueue_all(self, launches: Sequence[Launch]) -> None:
        for launch in launches:
            self._enqueue(launch)

    def _enqueue(self, launch: Launch) -> None:
        kernel: Kernel = launch.kernel
        given = tuple(len(argument) for argument in launch.arguments)
        if given != kernel.sizes:
            sizes = f"parameters of {list(kernel.sizes)} bytes, the plan gives {list(given)}"
            raise DeviceError(f"{kernel.symbol} takes {sizes}")
        words = [ctypes.create_string_buffer(argument, len(argument)) for argument in launch.arguments]
        pointers = (ctypes.c_void_p * len(words))(*(ctypes.addressof(word) for word in words))
        stream = ctypes.c_void_p(self._stream.ptr)
        self._call("cuLaunchKernel", kernel.function, *launch.grid, *(1, 1, 1), 0, stream, pointers, None)

    def _settle(self) -> None:
        """Waits for what CuPy has in its own stream: copies into the memory that the kernels read."""
        self._synchronize(cupy.cuda.Stream.null)

    def _synchronize(self, awaited: Any) -> None:
        try:
            awaited.synchronize()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise DeviceError(str(error), fatal=error.status in _FATAL) from error

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._driver, function)(*arguments)
        if status != 0:
            raise DeviceError(f"{function}: {self._error_name(status)}", fatal=status in _FATAL)

    def _error_name(self, status: int) -> str:
        name = ctypes.c_char_p()
        self._driver.cuGetErrorName(status, ctypes.byref(name))
        return (name.value or b"").decode() or str(status)
