"""Which GPU a verdict is about: product, compute capability and size. Knows no driver and no machine.

Verdicts hold for a *class* of devices, so that a machine without a GPU can say which ones it needs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_FORM = re.compile(r"(?P<name>[^/]+)/(?P<capability>\d+\.\d)/(?P<count>\d+)")


@dataclass(frozen=True)
class DeviceClass:
    name: str
    compute_capability: str
    sm_count: int

    @staticmethod
    def parse(text: str) -> DeviceClass:
        """Of `NVIDIA H200/9.0/132`. Raises ValueError."""
        match = _FORM.fullmatch(text.strip())
        if match is None:
            form = "write product, compute capability and number of SMs as 'NVIDIA H200/9.0/132'"
            raise ValueError(f"{text!r} is not a device class; {form}")
        return DeviceClass(match["name"].strip(), match["capability"], int(match["count"]))

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> DeviceClass:
        return DeviceClass(data["name"], data["compute_capability"], data["sm_count"])

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "compute_capability": self.compute_capability,
            "sm_count": self.sm_count,
        }

    @property
    def slug(self) -> str:
        """A file name: `nvidia-h200-cc9.0-132sm`."""
        words = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")
        return f"{words}-cc{self.compute_capability}-{self.sm_count}sm"

    def runs(self, architecture: str) -> bool:
        """Whether code for `sm_90` or `sm_90a` is code for this device."""
        return architecture.rstrip("af") == f"sm_{self.compute_capability.replace('.', '')}"

    def __str__(self) -> str:
        return f"{self.name} (compute capability {self.compute_capability}, {self.sm_count} SMs)"
