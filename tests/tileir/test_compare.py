"""Edits that keep the meaning of a program are accepted, edits that change it are found, machine code
aside."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tileir.conftest import COUNTS, pair, programs
from tests.tileir.edits import CHANGING, KEEPING, Program
from tilebuild.tileir.compare import Relation, compare
from tilebuild.tileir.parse import parse
from tilebuild.tileir.print import print_entry
from tilebuild.tileir.tree import Entry

EXAMPLES = 15
MANY = 40


def relation(one: Entry, other: Entry) -> Relation:
    return compare(one, other, "sm_90")


def checked(edited: Entry) -> Entry:
    """The edited program, printed and read: an edit that breaks its form fails here."""
    return parse(print_entry(edited))


@pytest.mark.parametrize("edit", KEEPING)
@settings(max_examples=EXAMPLES, deadline=None)
@given(
    name=st.sampled_from(sorted(programs())),
    random=st.randoms(use_true_random=False),
    times=st.integers(1, 4),
)
def test_edits_that_keep_the_meaning_are_accepted(edit: str, name: str, random: Random, times: int) -> None:
    keep(edit, name, random, times)


@pytest.mark.parametrize("edit", CHANGING)
@settings(max_examples=EXAMPLES, deadline=None)
@given(name=st.sampled_from(sorted(programs())), random=st.randoms(use_true_random=False))
def test_edits_that_change_the_meaning_are_found(edit: str, name: str, random: Random) -> None:
    change(edit, name, random)


@pytest.mark.slow
@pytest.mark.parametrize("edit", KEEPING | CHANGING)
@pytest.mark.parametrize("name", sorted(programs()))
def test_many_edits_of_every_program(edit: str, name: str) -> None:
    for seed in range(MANY):
        if edit in KEEPING:
            keep(edit, name, Random(seed), 1 + seed % 4)
        else:
            change(edit, name, Random(seed))


def keep(edit: str, name: str, random: Random, times: int) -> None:
    original = edited = programs()[name]
    for _ in range(times):
        changed = KEEPING[edit](Program(edited), random)
        if changed is None:
            return
        edited = checked(changed)
    for one, other in ((original, edited), (edited, original)):
        found = relation(one, other)
        assert found.same_normal_form, f"{edit} of {name}: {found.difference}\n{print_entry(edited)}"
    COUNTS["edits that keep the meaning, all accepted"] += times


def change(edit: str, name: str, random: Random) -> None:
    original = programs()[name]
    changed = CHANGING[edit](Program(original), random)
    if changed is None:
        return
    found = relation(original, checked(changed))
    assert not found.same_ir
    assert not found.same_normal_form, f"{edit} of {name} was not found:\n{print_entry(changed)}"
    assert found.difference is not None
    assert found.difference.fact
    assert found.different_hints == (edit == "promise_less")
    assert not found.stronger_order
    COUNTS["edits that change the meaning, all found"] += 1


def test_every_edit_applies_somewhere() -> None:
    random = Random(0)
    applied: Counter[str] = Counter()
    for name, edit in (KEEPING | CHANGING).items():
        applied[name] += sum(edit(Program(entry), random) is not None for entry in programs().values())
    assert all(applied.values()), applied


@pytest.mark.parametrize(
    "name",
    [
        "vector_add",
        "matmul",
        "matmul_swizzled",
        "softmax_persistent",
        "layer_norm",
        "gather_rows",
        "inplace_loop",
        "scale_inplace",
        "two_pass",
        "store_twice_loop",
        "column_sum_safe",
    ],
)
def test_real_ports_have_the_normal_form_of_their_original(name: str) -> None:
    found = relation(*pair(name))
    assert found.same_normal_form, found.difference
    assert not found.same_ir
    assert found.interface == ("trailing-unused" if name.endswith("safe") else "same")


def reordered() -> tuple[Entry, Entry]:
    """A kernel that loads and stores one array, and the same without the order of the two."""
    ordered = programs()["scale_inplace"]
    free = CHANGING["drop_order"](Program(ordered), Random(0))
    assert free is not None
    return ordered, checked(free)


def test_a_port_that_orders_less_is_different() -> None:
    ordered, free = reordered()
    found = relation(ordered, free)
    assert not found.stronger_order
    assert found.difference is not None
    assert found.difference.fact == "only Python orders store_view_tko after load_view_tko"
    assert list(ordered.walk())[found.difference.python_op].name == "store_view_tko"
    assert list(free.walk())[found.difference.rust_op].name == "store_view_tko"


def test_a_port_that_orders_more_is_stronger() -> None:
    ordered, free = reordered()
    found = relation(free, ordered)
    assert found.stronger_order
    assert not found.same_normal_form
    assert found.difference is not None
    assert found.difference.fact == "only Rust orders store_view_tko after load_view_tko"


def test_another_padding_is_named() -> None:
    found = relation(*pair("vector_add_padded"))
    assert found.difference is not None
    assert found.difference.fact == "make_partition_view: padding is undetermined in Python, zero in Rust"


def test_hints_are_resolved_for_the_architecture() -> None:
    entry = programs()["vector_add"]
    by_default = _hinted(entry, {"default": {"occupancy": 2}})
    by_name = _hinted(entry, {"default": {"occupancy": 4}, "sm_90": {"occupancy": 2}})
    assert compare(by_default, by_name, "sm_90").same_ir
    assert compare(by_default, by_name, "sm_100").different_hints


def _hinted(entry: Entry, hints: dict[str, dict[str, int | bool]]) -> Entry:
    return Entry(entry.symbol, entry.parameters, entry.body, entry.types, hints, entry.globals)


def test_interfaces() -> None:
    python, rust = pair("column_sum_safe")
    assert relation(python, rust).interface == "trailing-unused"
    assert relation(rust, python).interface == "different"
    assert relation(python, python).interface == "same"


def test_permuted_parameters_are_matched_by_first_use() -> None:
    python = programs()["gathered"]
    order = [*python.parameters[5:], *python.parameters[:5]]
    new = {old: number for number, old in enumerate(order)}
    text = print_entry(python)
    head, _, body = text.partition("\n")
    declared = ", ".join(f"%{number}: {python.types[old]}" for old, number in new.items())
    renamed = re.sub(r"%(\d+)\b", lambda m: f"%{new.get(int(m[1]), m[1])}", body)
    rust = parse(head.partition("(")[0] + f"({declared}) {{\n" + renamed)
    found = relation(python, rust)
    assert found.interface == "permuted"
    assert found.same_normal_form, found.difference
