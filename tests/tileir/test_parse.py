"""What the disassembler prints is read, printed and read again to the same tree."""

from __future__ import annotations

import re

import pytest
from cuda.tile._bytecode import encodings

from tests.tileir import every_operation
from tests.tileir.conftest import PAIRS, programs, tool
from tilebuild.diagnostics import DiagnosticError
from tilebuild.tileir.disassemble import disassemble
from tilebuild.tileir.operations import REGION_OPERATIONS, SYNTAX
from tilebuild.tileir.parse import parse
from tilebuild.tileir.print import print_entry
from tilebuild.tileir.tree import Entry

#: What no byte code of version 13.4 can hold, and what is no operation of a body.
_NOT_IN_A_BODY = {"module", "entry", "global", "preview_call"}
_LATER_VERSION = {"multimem_load_reduce_view_tko", "multimem_reduce_view_tko", "multimem_store_view_tko"}

SMALL = """entry @k(%arg0: tile<ptr<f32>>, %arg1: tile<i1>) {
  %0 = make_token : token
  if %arg1 {
    %1, %2 = load_ptr_tko weak %arg0 token=%0 : tile<ptr<f32>> -> tile<f32>, token
  } else {
  }
  return
}
"""


def module(name: str) -> Entry:
    byte_code = every_operation.module(every_operation.CASES[name])
    return parse(disassemble(byte_code, tool("tileirdisasm")), name)


@pytest.mark.parametrize("name", every_operation.CASES)
def test_every_printed_form_is_read_and_printed(name: str) -> None:
    entry = module(name)
    text = print_entry(entry)
    assert parse(text) == entry
    assert print_entry(parse(text)) == text


def test_every_operation_has_a_case() -> None:
    encoded = (
        {_snake(n) for n in encodings.__all__ if n.startswith("encode_")} - _NOT_IN_A_BODY - _LATER_VERSION
    )
    seen = {operation.name for name in every_operation.CASES for operation in module(name).walk()}
    assert {_printed(name) for name in encoded} == seen
    assert seen == set(SYNTAX) | REGION_OPERATIONS


@pytest.mark.parametrize("name", sorted(path.stem for path in PAIRS.glob("*.tileir")))
def test_real_programs_are_printed_and_read_again(name: str) -> None:
    entry = parse((PAIRS / f"{name}.tileir").read_text())
    assert parse(print_entry(entry)) == entry


def test_values_are_numbered_in_order_of_definition() -> None:
    for entry in programs().values():
        defined = list(entry.parameters)

        def visit(block: object, defined: list[int] = defined) -> None:
            for operation in block.operations:  # type: ignore[attr-defined]
                for region in operation.regions:
                    defined.extend(region.arguments)
                    visit(region)
                defined.extend(operation.results)

        visit(entry.body)
        assert defined == list(range(len(entry.types)))


def test_what_the_text_leaves_out_is_there() -> None:
    entry = parse(SMALL)
    branch = entry.body.operations[1]
    assert [region.operations[-1].name for region in branch.regions] == ["yield", "yield"]
    addition = module("rounded_floats").body.operations[2]
    assert (addition.name, addition.attributes) == ("addf", {"rounding": "nearest_even"})


def test_operands_have_named_groups() -> None:
    load = next(o for o in parse(SMALL).walk() if o.name == "load_ptr_tko")
    assert load.group("source") == (0,)
    assert load.group("token") == (2,)
    assert load.group("mask") == ()


def test_locations_are_read_with_their_call_sites() -> None:
    text = SMALL.replace("make_token : token", "make_token : token loc(#loc5)") + (
        '#loc = loc("/w/k.py":4:12)\n'
        '#loc2 = loc("/w/helpers.py":9:0)\n'
        "#di_subprogram = #cuda_tile.di_subprogram<file = #di_file>\n"
        "#loc3 = #cuda_tile.di_loc<#loc in #di_subprogram>\n"
        "#loc4 = #cuda_tile.di_loc<#loc2 in #di_subprogram>\n"
        "#loc5 = loc(callsite(#loc4 at #loc3))\n"
    )
    place = parse(text).body.operations[0].location
    assert place is not None
    assert (place.path, place.line) == ("/w/helpers.py", 9)
    assert [(c.path, c.line, c.column) for c in place.callers] == [("/w/k.py", 4, 12)]


@pytest.mark.parametrize(
    ("before", "after", "fact"),
    [
        ("make_token", "make_coffee", "k.tileir:2: unknown operation 'make_coffee'"),
        ("token=%0", "token=%9", "k.tileir:4: expected a value, found '%9'"),
        ("ptr<f32>> ->", "ptr<f32>> ->>", "k.tileir:4:"),
        ("return\n", "", "k.tileir:7: a block ends without"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(before: str, after: str, fact: str) -> None:
    with pytest.raises(DiagnosticError, match=re.escape(fact)):
        parse(SMALL.replace(before, after, 1), "k.tileir")


def _snake(name: str) -> str:
    words = name.removeprefix("encode_").removesuffix("Op")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", words).lower()


def _printed(name: str) -> str:
    """The disassembler's spelling of an encoder's name: `add_f` is `addf`, `f_to_i` is `ftoi`."""
    return next(
        spelled
        for spelled in (*SYNTAX, *REGION_OPERATIONS)
        if spelled.replace("_", "") == name.replace("_", "")
    )


def test_symbols_may_have_letters_of_any_script() -> None:
    """The disassembler quotes them, with the bytes of their UTF-8 in hexadecimal."""
    text = SMALL.replace("@k", r'@"\CF\80_kernel"')
    entry = parse(text)
    assert entry.symbol == "π_kernel"
    assert print_entry(entry).startswith(r'entry @"\CF\80_kernel"(')
    assert parse(print_entry(entry)) == entry
