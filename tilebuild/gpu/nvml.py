"""Clocks, temperature, power and the reasons for a lower clock, from the driver's management library."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

from tilebuild.gpu.device import Clocks, DeviceError

_SM_CLOCK = 1
_GPU_TEMPERATURE = 0
#: Reasons that make a clock lower than asked for; being idle or capped by the user are none.
_REASONS: Mapping[int, str] = {
    0x04: "power limit",
    0x08: "hardware slowdown",
    0x20: "software thermal",
    0x40: "hardware thermal",
    0x80: "hardware power brake",
}


class Monitor:
    """Reads one device, named by its PCI bus id. Raises `DeviceError` where the library refuses."""

    def __init__(self, bus_id: str) -> None:
        try:
            self._library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError as error:
            raise DeviceError(f"the driver's management library is missing: {error}") from error
        self._handle = ctypes.c_void_p()
        self._call("nvmlInit_v2")
        self._call("nvmlDeviceGetHandleByPciBusId_v2", bus_id.encode(), ctypes.byref(self._handle))

    def read(self) -> Clocks:
        reasons = ctypes.c_ulonglong()
        self._call("nvmlDeviceGetCurrentClocksThrottleReasons", self._handle, ctypes.byref(reasons))
        return Clocks(
            sm_mhz=self._number("nvmlDeviceGetClockInfo", _SM_CLOCK),
            temperature=self._number("nvmlDeviceGetTemperature", _GPU_TEMPERATURE),
            power_watts=round(self._number("nvmlDeviceGetPowerUsage") / 1000),
            reasons=tuple(text for bit, text in _REASONS.items() if reasons.value & bit),
        )

    def driver_version(self) -> str:
        text = ctypes.create_string_buffer(80)
        self._call("nvmlSystemGetDriverVersion", text, len(text))
        return text.value.decode()

    def _number(self, function: str, *selectors: int) -> int:
        value = ctypes.c_uint()
        self._call(function, self._handle, *selectors, ctypes.byref(value))
        return value.value

    def _call(self, function: str, *arguments: object) -> None:
        status = getattr(self._library, function)(*arguments)
        if status != 0:
            raise DeviceError(f"{function} returned {status}")
