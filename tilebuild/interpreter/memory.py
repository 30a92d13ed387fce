"""The global memory of a launch: arrays between guard zones, in one run of bytes. Knows no operation.

Every byte belongs to one array or to none. A load or store outside of all arrays is a fault, as is a
store into the gaps of a strided array, and every byte that was written is remembered. So guard zones,
unwritten outputs and writes to inputs are facts, not guesses from sentinel values; the poison in
unwritten memory only makes reads of it visible in results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilebuild.interpreter import elements
from tilebuild.interpreter.elements import Array
from tilebuild.tileir.tree import Element

#: Where memory begins: a plausible device address, 256-byte aligned, so that a null pointer or an index is a
#: fault.
_ORIGIN = 0x7F00_0000_0000
_ALIGNMENT = 256
#: Bytes between arrays; at least one tile of the usual sizes, so that overruns land in a zone and not in a
#: neighbour.
GUARD_BYTES = 64 * 1024


class MemoryFault(Exception):
    """An access that no correct program makes."""


@dataclass(frozen=True)
class Region:
    """An array in memory: strides in elements, `address` of its first element."""

    name: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: Element

    def addresses(self) -> Array:
        """The address of each element, in the array's shape."""
        offsets = np.zeros(self.shape, dtype=np.int64)
        for axis, (length, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            steps = np.arange(length, dtype=np.int64) * stride
            offsets += steps.reshape([-1 if a == axis else 1 for a in range(len(self.shape))])
        return self.address + offsets * elements.item_bytes(self.element)


class Memory:
    """Bytes with an owner. Arrays are placed first; then `load` and `store` work on addresses."""

    def __init__(self, capacity: int) -> None:
        capacity = (
            math.ceil(capacity / _ALIGNMENT) * _ALIGNMENT
        )  # so that it divides into elements of any width
        self._bytes = np.zeros(capacity, dtype=np.uint8)
        self._owner = np.zeros(capacity, dtype=np.int32)
        self._written = np.zeros(capacity, dtype=np.bool_)
        self._names = [""]
        self._end = GUARD_BYTES

    @staticmethod
    def room(sizes: Sequence[int]) -> int:
        """The capacity that arrays of these byte sizes need."""
        return GUARD_BYTES + sum(size + GUARD_BYTES + 2 * _ALIGNMENT for size in sizes)

    def reserve(self, byte_count: int, byte_offset: int = 0) -> int:
        """Room for an array, `byte_offset` after an aligned address; returns the address of its first
        byte."""
        start = math.ceil(self._end / _ALIGNMENT) * _ALIGNMENT + byte_offset
        self._end = start + byte_count + GUARD_BYTES
        if self._end > self._bytes.size:
            raise MemoryFault("the memory of the launch is too small for its arrays")
        return _ORIGIN + start

    def place(self, region: Region, content: Array | None) -> None:
        """Gives the region its bytes: `content` in its shape, or poison. A region may lie within another
        one."""
        width = elements.item_bytes(region.element)
        indices = (region.addresses().reshape(-1, 1) - _ORIGIN) + np.arange(width)
        self._names.append(region.name)
        fresh = self._owner[indices] == 0
        self._owner[indices] = np.where(fresh, len(self._names) - 1, self._owner[indices])
        if content is not None:
            flat = np.ascontiguousarray(content).reshape(-1)
            self._bytes[indices] = flat.view(np.uint8).reshape(-1, width)
        elif fresh.all():
            self._bytes[indices] = elements.poison_byte(region.element)

    def read(self, region: Region) -> Array:
        """The content of a region, in its shape."""
        return self._gather(region.addresses() - _ORIGIN, region.element)

    def written(self, region: Region) -> Array:
        """Which elements of a region any store has touched."""
        return np.asarray(self._written[region.addresses() - _ORIGIN])

    def load(self, addresses: Array, element: Element, mask: Array | None = None) -> Array:
        """The elements at addresses; where the mask is off, poison. Raises `MemoryFault`."""
        indices = addresses - _ORIGIN
        if mask is None:
            self._check(indices, element, "reads")
            return self._gather(indices, element)
        result = elements.poison(indices.shape, element)
        active = indices[mask]
        self._check(active, element, "reads")
        result[mask] = self._gather(active, element)
        return result

    def store(self, addresses: Array, values: Array, element: Element, mask: Array | None = None) -> None:
        """Writes elements; where two lanes share an address, the last one stays. Raises `MemoryFault`."""
        indices = addresses - _ORIGIN
        if mask is not None:
            indices, values = indices[mask], values[mask]
        self._check(indices, element, "writes")
        width = elements.item_bytes(element)
        if self._aligned(indices, width):
            slots = indices // width
            self._bytes.view(values.dtype if width > 1 else np.uint8)[slots] = (
                values if width > 1 else values.view(np.uint8)
            )
            self._written.reshape(-1, width)[slots] = True
            return
        spread = indices[..., None] + np.arange(width)
        self._bytes[spread] = np.ascontiguousarray(values)[..., None].view(np.uint8)
        self._written[spread] = True

    def _gather(self, indices: Array, element: Element) -> Array:
        dtype = elements.numpy_type(element)
        if dtype == np.bool_:
            return np.asarray(self._bytes[indices] != 0)
        if self._aligned(indices, dtype.itemsize):
            return np.asarray(self._bytes.view(dtype)[indices // dtype.itemsize])
        spread = self._bytes[indices[..., None] + np.arange(dtype.itemsize)]
        return np.ascontiguousarray(spread).view(dtype).reshape(indices.shape)

    def _aligned(self, indices: Array, width: int) -> bool:
        return width == 1 or not np.any(indices & (width - 1))

    def _check(self, indices: Array, element: Element, verb: str) -> None:
        if indices.size == 0:
            return
        width = elements.item_bytes(element)
        low, high = int(indices.min()), int(indices.max())
        if low < 0 or high + width > self._owner.size:
            raise MemoryFault(f"{verb} an address that lies outside of every array")
        owned = self._owner[indices] != 0
        if width > 1:
            owned &= self._owner[indices + (width - 1)] != 0
        if not owned.all():
            at = int(np.asarray(indices).reshape(-1)[int(np.argmin(owned.reshape(-1)))])
            raise MemoryFault(f"{verb} {width} bytes {self._place(at)}")

    def _place(self, index: int) -> str:
        """In words where an address lies that belongs to no array."""
        owned = np.flatnonzero(self._owner)
        if not owned.size:
            return "where there is no array: those of this launch have no elements"
        after = int(np.searchsorted(owned, index))
        if after == 0:
            return f"{int(owned[0]) - index} bytes before the array {self._names[self._owner[owned[0]]]!r}"
        before = int(owned[after - 1])
        name = self._names[self._owner[before]]
        if after < len(owned) and self._owner[owned[after]] == self._owner[before]:
            return f"in a gap of the strided array {name!r}"
        return f"{index - before - 1} bytes after the end of the array {name!r}"
