"""The memory of a launch: who owns a byte, and who touched it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilebuild.interpreter import elements
from tilebuild.interpreter.memory import Memory, MemoryFault, Region
from tilebuild.tileir.tree import Scalar

F32, I8 = Scalar("f32"), Scalar("i8")


def _memory(*regions: tuple[str, tuple[int, ...], tuple[int, ...]]) -> tuple[Memory, list[Region]]:
    memory = Memory(Memory.room([4096] * (len(regions) + 1)))
    placed = []
    for name, shape, strides in regions:
        region = Region(name, memory.reserve(1024), shape, strides, F32)
        memory.place(region, None)
        placed.append(region)
    return memory, placed


def test_unwritten_memory_is_nan() -> None:
    memory, (a,) = _memory(("a", (4,), (1,)))
    assert np.isnan(memory.read(a)).all()
    assert not memory.written(a).any()


def test_a_store_is_seen_by_loads_and_remembered() -> None:
    memory, (a,) = _memory(("a", (4,), (1,)))
    memory.store(a.addresses()[1:3], np.array([1.5, 2.5], dtype=np.float32), F32)
    np.testing.assert_array_equal(memory.written(a), [False, True, True, False])
    np.testing.assert_array_equal(memory.load(a.addresses()[1:3], F32), [1.5, 2.5])


def test_masked_lanes_touch_nothing() -> None:
    memory, (a,) = _memory(("a", (2,), (1,)))
    addresses = np.array([a.address, 0])
    mask = np.array([True, False])
    memory.store(addresses, np.array([3.0, 4.0], dtype=np.float32), F32, mask)
    np.testing.assert_array_equal(memory.load(addresses, F32, mask), [3.0, np.nan])


def test_memory_may_be_read_as_another_type() -> None:
    memory, (a,) = _memory(("a", (2,), (1,)))
    memory.store(a.addresses(), np.array([1.0, -2.0], dtype=np.float32), F32)
    got = memory.load(a.address + np.arange(8), I8)
    assert got.tobytes() == np.array([1.0, -2.0], dtype=np.float32).tobytes()


def test_elements_need_no_alignment() -> None:
    memory, (a,) = _memory(("a", (4,), (1,)))
    memory.store(a.addresses()[:2] + 1, np.array([1.0, 2.0], dtype=np.float32), F32)
    np.testing.assert_array_equal(memory.load(a.addresses()[:2] + 1, F32), [1.0, 2.0])


@pytest.mark.parametrize(
    ("offset", "fact"),
    [
        (-4, "writes 4 bytes 4 bytes before the array 'a'"),
        (32, "writes 4 bytes 0 bytes after the end of the array 'a'"),
        (30, "writes 4 bytes"),
        (4, "in a gap of the strided array 'a'"),
        (-(1 << 40), "outside of every array"),
    ],
)
def test_what_belongs_to_nobody_is_a_fault(offset: int, fact: str) -> None:
    memory, (a,) = _memory(("a", (2,), (7,)))
    with pytest.raises(MemoryFault, match=fact):
        memory.store(np.array(a.address + offset), np.array(1.0, dtype=np.float32), F32)


def test_an_alias_has_the_numbers_of_its_array() -> None:
    memory, (a,) = _memory(("a", (4,), (1,)))
    memory.store(a.addresses(), np.arange(4, dtype=np.float32), F32)
    alias = Region("b", a.address + 4, (2,), (2,), F32)
    memory.place(alias, None)
    np.testing.assert_array_equal(memory.read(alias), [1.0, 3.0])


WIDTHS = ("i1", "i8", "f8E4M3FN", "f16", "bf16", "i32", "f32", "f64", "i64")
ARRAY = st.tuples(st.sampled_from(WIDTHS), st.integers(0, 19), st.integers(0, 3))


@given(st.lists(ARRAY, min_size=1, max_size=4))
def test_arrays_of_all_widths_share_a_memory(wanted: list[tuple[str, int, int]]) -> None:
    """Whatever the number of bytes of each and wherever it begins: what is stored is read, and all of it."""
    sizes = [(offset + count) * elements.item_bytes(Scalar(name)) for name, count, offset in wanted]
    memory = Memory(Memory.room(sizes))
    placed = []
    for position, (name, count, offset) in enumerate(wanted):
        element = Scalar(name)
        width = elements.item_bytes(element)
        address = memory.reserve(count * width, offset * width)
        region = Region(f"a{position}", address, (count,), (1,), element)
        memory.place(region, None)
        placed.append(region)
    contents = [
        elements.from_numbers(range(region.shape[0]), Scalar("i8")).astype(
            elements.numpy_type(region.element)
        )
        for region in placed
    ]
    for region, content in zip(placed, contents, strict=True):
        memory.store(region.addresses(), content, region.element)
    for region, content in zip(placed, contents, strict=True):
        assert memory.read(region).tobytes() == content.tobytes()
        assert memory.load(region.addresses(), region.element).tobytes() == content.tobytes()
        assert memory.written(region).all()


def test_arrays_without_elements_own_nothing() -> None:
    memory = Memory(Memory.room([0]))
    region = Region("a", memory.reserve(0), (0,), (1,), F32)
    memory.place(region, None)
    assert memory.read(region).size == 0
    with pytest.raises(MemoryFault, match="where there is no array"):
        memory.load(np.array(region.address), F32)
