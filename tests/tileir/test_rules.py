"""Each rule of the normal form, on the smallest program that shows it: before and after have one term."""

from __future__ import annotations

import pytest

from tilebuild.tileir import folding, rules
from tilebuild.tileir.normalize import new_terms, normalize
from tilebuild.tileir.parse import parse
from tilebuild.tileir.tree import Entry

_PARAMETERS = (
    "%p: tile<ptr<f32>>, %q: tile<ptr<i1>>, %n: tile<i32>, %m: tile<i32>, "
    "%x: tile<f32>, %y: tile<f32>, %c: tile<i1>"
)
_CONSTANTS = """
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %two = constant <i32: 2> : tile<i32>
  %five = constant <i32: 5> : tile<i32>
  %true = constant <i1: true> : tile<i1>
"""


def program(lines: str) -> Entry:
    """Computes `%r` and stores it where the type of `%r` says: by a pointer to floats, to booleans or by
    index."""
    store = {
        "f32": "%s = store_ptr_tko weak %p, %r : tile<ptr<f32>>, tile<f32> -> token",
        "i1": "%s = store_ptr_tko weak %q, %r : tile<ptr<i1>>, tile<i1> -> token",
        "i32": "%o = offset %p, %r : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>\n"
        "%s = store_ptr_tko weak %o, %x : tile<ptr<f32>>, tile<f32> -> token",
    }
    kind = lines.rsplit("tile<", 1)[1].split(">")[0]
    return parse(f"entry @k({_PARAMETERS}) {{{_CONSTANTS}{lines}\n{store[kind]}\nreturn\n}}")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("%r = addi %n, %zero : tile<i32>", "%r = bitcast %n : tile<i32> -> tile<i32>"),
        ("%r = addi %m, %n : tile<i32>", "%r = addi %n, %m : tile<i32>"),
        ("%r = addi %two, %five : tile<i32>", "%r = constant <i32: 7> : tile<i32>"),
        ("%r = muli %one, %n : tile<i32>", "%r = subi %n, %zero : tile<i32>"),
        ("%r = addf %x, %y : tile<f32>", "%r = addf %y, %x : tile<f32>"),
        ("%r = fma %x, %y, %x : tile<f32>", "%r = fma %y, %x, %x : tile<f32>"),
        ("%r = itof %five signed : tile<i32> -> tile<f32>", "%r = constant <f32: 5.000000e+00> : tile<f32>"),
        ("%r = select %c, %x, %x : tile<i1>, tile<f32>", "%r = bitcast %x : tile<f32> -> tile<f32>"),
        ("%r = select %true, %x, %y : tile<i1>, tile<f32>", "%r = bitcast %x : tile<f32> -> tile<f32>"),
        (
            "%r = cmpi greater_than %n, %m, signed : tile<i32> -> tile<i1>",
            "%r = cmpi less_than %m, %n, signed : tile<i32> -> tile<i1>",
        ),
        (
            "%r = cmpi equal %n, %m, unsigned : tile<i32> -> tile<i1>",
            "%r = cmpi equal %m, %n, signed : tile<i32> -> tile<i1>",
        ),
        (
            "%a = cmpf less_than ordered %x, %y : tile<f32> -> tile<i1>\n%r = xori %a, %true : tile<i1>",
            "%r = cmpf greater_than_or_equal unordered %x, %y : tile<f32> -> tile<i1>",
        ),
        ("%a = xori %c, %true : tile<i1>\n%r = xori %true, %a : tile<i1>", "%r = andi %c, %true : tile<i1>"),
        (
            "%r = if %c -> (tile<f32>) {\nyield %x : tile<f32>\n} else {\nyield %x : tile<f32>\n}",
            "%r = bitcast %x : tile<f32> -> tile<f32>",
        ),
        (
            "%a = reshape %x : tile<f32> -> tile<1xf32>\n%b = reshape %a : tile<1xf32> -> tile<1x1xf32>\n"
            "%r = reshape %b : tile<1x1xf32> -> tile<f32>",
            "%r = bitcast %x : tile<f32> -> tile<f32>",
        ),
    ],
)
def test_before_and_after_are_one(before: str, after: str) -> None:
    assert _items(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("%r = subi %n, %m : tile<i32>", "%r = subi %m, %n : tile<i32>"),
        ("%r = subi %zero, %n : tile<i32>", "%r = bitcast %n : tile<i32> -> tile<i32>"),
        ("%r = maxf %x, %y : tile<f32>", "%r = maxf %y, %x : tile<f32>"),
        ("%r = fma %x, %y, %x : tile<f32>", "%r = fma %x, %x, %y : tile<f32>"),
        (
            "%r = cmpi less_than %n, %m, unsigned : tile<i32> -> tile<i1>",
            "%r = cmpi less_than %n, %m, signed : tile<i32> -> tile<i1>",
        ),
        (
            "%r = cmpf not_equal ordered %x, %y : tile<f32> -> tile<i1>",
            "%r = cmpf not_equal unordered %x, %y : tile<f32> -> tile<i1>",
        ),
        ("%r = constant <f32: 0.000000e+00> : tile<f32>", "%r = constant <f32: -0.000000e+00> : tile<f32>"),
        ("%r = constant <f32: 0x7FC00000> : tile<f32>", "%r = constant <f32: 0x7FC00001> : tile<f32>"),
    ],
)
def test_what_differs_stays_apart(before: str, after: str) -> None:
    assert not _items(before, after)


def _items(before: str, after: str) -> bool:
    terms = new_terms()
    one, other = normalize(program(before), terms), normalize(program(after), terms)
    return one.items.keys() == other.items.keys()


def test_every_rule_says_what_it_does() -> None:
    assert all("→" in (rule.__doc__ or "") or "the same" in (rule.__doc__ or "") for rule in rules.RULES)


@pytest.mark.parametrize(
    ("name", "left", "right", "rounding", "expected"),
    [
        ("divi", -7, 2, "zero", -3),
        ("divi", -7, 2, "negative_inf", -4),
        ("divi", 7, 2, "positive_inf", 4),
        ("divi", 7, 0, "zero", None),
        ("remi", -7, 2, "zero", -1),
        ("addi", 2**31 - 1, 1, "zero", -(2**31)),
        ("shli", 1, 32, "zero", None),
        ("shri", -8, 1, "zero", -4),
    ],
)
def test_integers_are_folded_as_a_device_computes(
    name: str, left: int, right: int, rounding: str, expected: int | None
) -> None:
    attributes = {"rounding": rounding, "signedness": "signed"}
    assert folding.binary(name, left, right, "i32", attributes.get) == expected
