"""The memory of a case on a device: buffers with guard zones, poison and views. Knows no kernel.

Each array that is no alias has a buffer of its own: a guard zone, the elements, a guard zone. Everything in
it that a kernel may not write (guards, gaps between strided elements, inputs) is compared with an image of
the buffer after a run. Outputs and scratch memory without a fill hold poison before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilebuild.fills import default_fill, draw, stream_key
from tilebuild.gpu.arguments import table
from tilebuild.gpu.device import Device
from tilebuild.gpu.elements import POISONS, STORAGE, decode, encode, poison_byte
from tilebuild.gpu.plan import Array, PlannedCase, Step

GUARD_BYTES = 4096
_ALIGNMENT = 256


@dataclass(frozen=True)
class Changes:
    """What a run changed that it may not: guard bytes (and gaps), and arrays that are only inputs."""

    guard_bytes: int
    inputs: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"guard_bytes": self.guard_bytes, "inputs": list(self.inputs)}


class _Buffer:
    """Raw bytes, the place of the aligned address in them, and their content before a run for each poison."""

    def __init__(self, device: Device, array: Array) -> None:
        self.device = device
        self.dtype = array.dtype
        content = (array.offset + array.reach) * array.item_bytes
        self.raw = device.xp.empty(content + 2 * GUARD_BYTES + _ALIGNMENT, dtype=device.xp.uint8)
        guarded = device.address(self.raw) + GUARD_BYTES
        self.start = GUARD_BYTES + -guarded % _ALIGNMENT
        self.images: dict[str, Any] = {}

    def view(self, raw: Any, array: Array) -> Any:
        """The elements of an array whose aligned address is the buffer's, in memory laid out like `raw`."""
        begin = self.start + array.offset * array.item_bytes
        words = raw[begin : begin + array.reach * array.item_bytes].view(STORAGE[array.dtype])
        strides = tuple(stride * array.item_bytes for stride in array.strides)
        return self.device.xp.lib.stride_tricks.as_strided(words, shape=array.shape, strides=strides)


class Memory:
    """All arrays of a case. `restore` before each run, `changes` after it."""

    def __init__(self, device: Device, case: PlannedCase, given: Mapping[str, Any] | None = None) -> None:
        """`given` holds the numbers of arrays that no recipe can express, by array."""
        self.device = device
        self.case = case
        self._buffers = {
            name: _Buffer(device, array) for name, array in case.arrays.items() if array.alias_of is None
        }
        self._written = self._mask(lambda array: array.role != "in")
        self._elements = self._mask(lambda array: True)
        for poison in POISONS:
            self._make_image(poison, given or {})
        self._tables: dict[tuple[str, ...], Any] = {}
        self.restore(POISONS[0])

    def restore(self, poison: str) -> None:
        """Puts every buffer into the state before a run."""
        for buffer in self._buffers.values():
            buffer.raw[...] = buffer.images[poison]

    def stored(self, name: str) -> Any:
        """A contiguous copy of an array's elements as they lie in memory now."""
        return self._view(name).copy()

    def inputs(self, name: str) -> Any:
        """A copy of the elements before a run, as a reference takes them."""
        buffer = self._buffer(name)
        view = buffer.view(buffer.images[POISONS[0]], self.case.arrays[name])
        return decode(self.device.xp, view.copy(), self.case.arrays[name].dtype)

    def unwritten(self, name: str, first: Any, second: Any) -> int:
        """How many elements hold the poison of the first run after it, and that of the second after that
        one.
        """
        buffer, array = self._buffer(name), self.case.arrays[name]
        if array.role != "out" or array.fill is not None or array.alias_of is not None:
            return 0
        before = [buffer.view(buffer.images[poison], array) for poison in POISONS]
        word = f"uint{8 * array.item_bytes}"
        same = [
            after.view(word) == image.copy().view(word)
            for after, image in zip((first, second), before, strict=True)
        ]
        return int((same[0] & same[1]).sum())

    def changes(self, poison: str) -> Changes:
        """What differs from the state before the run where nothing may be written."""
        xp = self.device.xp
        guards, inputs = 0, []
        for name, buffer in self._buffers.items():
            changed = (buffer.raw != buffer.images[poison]) & (self._written[name] == 0)
            if not bool(changed.any()):
                continue
            guards += int((changed & (self._elements[name] == 0)).sum())
            if bool((changed & (self._elements[name] != 0)).any()):
                inputs += [
                    alias
                    for alias, array in self.case.arrays.items()
                    if array.role == "in"
                    and self._root(alias) == name
                    and bool(buffer.view(changed.astype(xp.uint8), self._as_bytes(array)).any())
                ]
        return Changes(guards, tuple(inputs))

    def addresses(self) -> dict[str, int]:
        """Where the first element of each array lies."""
        found = {}
        for name, array in self.case.arrays.items():
            buffer = self._buffer(name)
            base = self.device.address(buffer.raw) + buffer.start
            found[name] = base + array.offset * array.item_bytes
        return found

    def tables(self, step: Step) -> dict[tuple[str, ...], int]:
        """Where the tables of the step's lists of arrays lie."""
        addresses = self.addresses()
        names = [
            tuple(value) for side in (step.python, step.rust) for kind, value in side.slots if kind == "table"
        ]
        for listed in names:
            if listed not in self._tables:
                words = table([(addresses[name], self.case.arrays[name]) for name in listed])
                self._tables[listed] = self.device.xp.asarray(words, dtype=self.device.xp.int64)
        return {listed: self.device.address(self._tables[listed]) for listed in names}

    def _make_image(self, poison: str, given: Mapping[str, Any]) -> None:
        for buffer in self._buffers.values():
            buffer.raw[...] = poison_byte(buffer.dtype, poison)
        for name, array in self.case.arrays.items():
            numbers = self._numbers(name, array, given)
            if numbers is not None and array.size:
                self._view(name)[...] = encode(self.device.xp, numbers, array.dtype)
        for buffer in self._buffers.values():
            buffer.images[poison] = buffer.raw.copy()

    def _numbers(self, name: str, array: Array, given: Mapping[str, Any]) -> Any:
        """The array's content before a run, or None where poison or another array is its content."""
        if name in given:
            return self.device.xp.asarray(given[name]).reshape(array.shape)
        if array.alias_of is not None or (not array.read and array.fill is None):
            return None
        recipe = default_fill(array.dtype) if array.fill is None else array.fill
        return draw(self.device.xp, recipe, array.shape, stream_key(self.case.seed, self.case.name, name))

    def _mask(self, chosen: Any) -> dict[str, Any]:
        """For each buffer, which of its bytes are elements of the chosen arrays."""
        xp = self.device.xp
        masks = {name: xp.zeros(buffer.raw.shape, dtype=xp.uint8) for name, buffer in self._buffers.items()}
        for name, array in self.case.arrays.items():
            if array.size and chosen(array):
                root = self._root(name)
                self._buffers[root].view(masks[root], self._as_bytes(array))[...] = 1
        return masks

    def _as_bytes(self, array: Array) -> Array:
        """The same bytes, as an array of bytes with one dimension more."""
        width = array.item_bytes
        return Array(
            role=array.role,
            dtype="u8",
            shape=(*array.shape, width),
            strides=(*(stride * width for stride in array.strides), 1),
            offset=array.offset * width,
            fill=None,
            alias_of=None,
            index_dtype=array.index_dtype,
        )

    def _root(self, name: str) -> str:
        return self.case.arrays[name].alias_of or name

    def _buffer(self, name: str) -> _Buffer:
        return self._buffers[self._root(name)]

    def _view(self, name: str) -> Any:
        buffer = self._buffer(name)
        return buffer.view(buffer.raw, self.case.arrays[name])
