"""python_ir: what stays equal, what is recorded beside the byte code, and how refusals look."""

from __future__ import annotations

import pytest

from tests.tools.front_end import SOFTMAX, FrontEnd, matrix, softmax_signature
from tilebuild.diagnostics import Blame
from tilebuild.signature import Constant, ScalarParameter, Signature, array_parameter, signature
from tilebuild.tileir.disassemble import InvalidByteCode
from tilebuild.tileir.parse import parse
from tilebuild.tools import python_ir

ONE_TILE = """
import cuda.tile as ct
{imports}

@ct.kernel
def copy(x, y, T: ct.Constant[int]):
    tile = ct.load(x, index=(0, 0), shape=(1, T))
    ct.store(y, index=(0, 0), tile={tile})
"""


def copy_signature() -> Signature:
    return signature([matrix(), matrix(), Constant(1024)])


@pytest.mark.parametrize(
    "change",
    [
        ("", ""),
        ("import cuda.tile as ct\n", "import cuda.tile as ct\n\n# a comment\n\nUNUSED = 1\n"),
        ("numerator", "exponentials"),
        ("    for row", '    """A docstring."""\n    for row'),
    ],
    ids=["other folder", "comment and shifted lines", "renamed local", "docstring"],
)
def test_byte_code_is_the_same(front_end: FrontEnd, change: tuple[str, str]) -> None:
    first = front_end.compile("softmax", softmax_signature(), SOFTMAX)
    second = front_end.compile(
        "softmax", softmax_signature(), SOFTMAX.replace(*change) if change[0] else SOFTMAX
    )
    assert first.ok
    assert second.ok
    assert first.byte_code == second.byte_code
    for name in ("status.json", "hints.json", "interface.json"):
        assert first.json(name) == second.json(name)


def test_another_constant_gives_other_byte_code(front_end: FrontEnd) -> None:
    first = front_end.compile("softmax", softmax_signature(), SOFTMAX)
    second = front_end.compile("softmax", softmax_signature(), SOFTMAX.replace("NEG_INF", "ZERO"))
    assert first.byte_code != second.byte_code


def test_names_types_and_places_are_numbered_as_the_tree_is(front_end: FrontEnd) -> None:
    answer = front_end.compile("softmax", softmax_signature(), SOFTMAX)
    entry = parse(answer.text)
    recorded = answer.json("names.json")
    operations = list(entry.walk())
    assert len(recorded["names"]) == len(recorded["dtypes"]) == len(entry.types)
    assert len(recorded["locations"]) == len(operations)
    assert entry.symbol == "softmax"
    assert recorded["names"][:6] == ["x", "x_shape0", "x_shape1", "x_stride0", "x_stride1", "out"]

    (loop,) = (o for o in operations if o.name == "for")
    assert recorded["names"][loop.regions[0].arguments[0]] == "row"
    load = next(o for o in operations if o.name == "load_view_tko")
    assert recorded["names"][load.results[0]] == "logits"
    assert recorded["dtypes"][load.results[0]] == "float16"
    place = recorded["location_table"][recorded["locations"][operations.index(load)]]
    assert place[0] == "src.py"
    assert SOFTMAX.splitlines()[place[1] - 1][place[2] - 1 :].startswith("ct.load(x")


def test_signedness_is_recorded(front_end: FrontEnd) -> None:
    unsigned = array_parameter("u32", [256, 1024], [1024, 1])
    source = ONE_TILE.format(imports="", tile="tile + tile")
    answer = front_end.compile("copy", signature([unsigned, unsigned, Constant(16)]), source)
    assert "uint32" in answer.json("names.json")["dtypes"]
    assert "pointer[uint32]" in answer.json("names.json")["dtypes"]


def test_a_place_in_a_helper_names_its_callers(front_end: FrontEnd) -> None:
    helper = "import cuda.tile as ct\ndef twice(t):\n    return t + t\n"
    kernel = ONE_TILE.format(imports="from helpers import twice", tile="twice(tile)")
    answer = front_end.compile("copy", copy_signature(), kernel, files={"helpers.py": helper})
    table = answer.json("names.json")["location_table"]
    assert ["helpers.py", 3, 12, ["src.py", 8, 36]] in table


def test_interface_lists_python_parameters(front_end: FrontEnd) -> None:
    answer = front_end.compile("softmax", softmax_signature(), SOFTMAX)
    array = {"kind": "array", "dtype": "float16", "ndim": 2, "index_dtype": "int32"}
    assert answer.json("interface.json")["parameters"] == [
        {"name": "x", **array},
        {"name": "out", **array},
        {"name": "n_rows", "kind": "scalar", "dtype": "int32"},
        {"name": "TILE", "kind": "constant", "value": 1024},
    ]


BY_TARGET = SOFTMAX.replace("occupancy=2", "occupancy=ct.ByTarget(sm_100=4, default=1), num_ctas=2")


@pytest.mark.parametrize(
    ("source", "arch", "hints", "expected"),
    [
        (SOFTMAX, "sm_90", {}, {"occupancy": 2}),
        (SOFTMAX, "sm_90", {"occupancy": 8}, {"occupancy": 8}),
        (BY_TARGET, "sm_90", {}, {"num_cta_in_cga": 2, "occupancy": 1}),
        (BY_TARGET, "sm_100", {}, {"num_cta_in_cga": 2, "occupancy": 4}),
        (SOFTMAX, "sm_90", {"occupancy": {"ByTarget": {"sm_90": 3, "default": 5}}}, {"occupancy": 3}),
        (SOFTMAX, "sm_90", {"num_worker_warps": 4}, {"num_worker_warps_per_cta": 4, "occupancy": 2}),
    ],
)
def test_hints_of_one_architecture(
    front_end: FrontEnd, source: str, arch: str, hints: dict[str, object], expected: dict[str, int]
) -> None:
    assert (
        front_end.compile("softmax", softmax_signature(**hints), source, arch=arch).json("hints.json")
        == expected
    )


def test_annotations_decide_the_width_of_indices(front_end: FrontEnd) -> None:
    source = ONE_TILE.format(imports="", tile="tile").replace("x, y", "x: ct.IndexedWithInt64, y")
    answer = front_end.compile("copy", copy_signature(), source)
    assert answer.ok
    widths = [p["index_dtype"] for p in answer.json("interface.json")["parameters"][:2]]
    assert widths == ["int64", "int32"]
    assert answer.json("names.json")["dtypes"][1] == "int64"


# What goes wrong


def test_a_refusal_is_shown_at_the_user_s_line(front_end: FrontEnd) -> None:
    answer = front_end.compile("copy", copy_signature(), ONE_TILE.format(imports="", tile="ct.nothing(tile)"))
    assert not answer.ok
    assert answer.byte_code == b""
    assert answer.text == ""
    assert answer.diagnostic.blame is Blame.KERNEL
    assert str(answer.diagnostic.span) == "src.py:8:36"
    assert answer.diagnostic.render().splitlines()[-2:] == [
        "    ct.store(y, index=(0, 0), tile=ct.nothing(tile))",
        "                                   ^^^^^^^^^^",
    ]


def test_a_syntax_error_has_its_place(front_end: FrontEnd) -> None:
    problem = front_end.compile("copy", copy_signature(), "def copy(x:\n").diagnostic
    assert problem.fact == "SyntaxError: '(' was never closed"
    assert str(problem.span) == "src.py:1:9"


def test_an_exception_at_import_has_its_place(front_end: FrontEnd) -> None:
    files = {"constants.py": "WIDTH = 1 // 0\n"}
    problem = front_end.compile("copy", copy_signature(), "import constants\n", files=files).diagnostic
    assert str(problem.span) == "constants.py:1:9"
    assert "ZeroDivisionError" in problem.fact
    assert [str(note.span) for note in problem.notes] == ["src.py:1:1"]


def test_an_unknown_kernel_gets_a_suggestion(front_end: FrontEnd) -> None:
    problem = front_end.compile("sofmax", softmax_signature(), SOFTMAX).diagnostic
    assert problem.blame is Blame.BUILD_FILE
    assert problem.help == "did you mean 'softmax'?"


def test_a_plain_function_is_no_kernel(front_end: FrontEnd) -> None:
    problem = front_end.compile("f", softmax_signature(), "def f(x): ...\n").diagnostic
    assert "no kernel" in problem.fact
    assert str(problem.span) == "src.py:1:5"


def test_arity_is_checked_first(front_end: FrontEnd) -> None:
    problem = front_end.compile("softmax", copy_signature(), SOFTMAX).diagnostic
    assert problem.blame is Blame.BUILD_FILE
    assert problem.fact == "kernel `softmax` takes 4 arguments, the launch gives 3"
    assert problem.notes[0].message == "its parameters are x, out, n_rows, TILE"


def test_a_constant_parameter_needs_a_constant(front_end: FrontEnd) -> None:
    given = signature([matrix(), matrix(), ScalarParameter("int32"), ScalarParameter("int32")])
    problem = front_end.compile("softmax", given, SOFTMAX).diagnostic
    assert problem.blame is Blame.BUILD_FILE
    assert "'TILE'" in problem.fact


def test_a_hint_out_of_range_blames_the_build_file(front_end: FrontEnd) -> None:
    problem = front_end.compile("softmax", softmax_signature(occupancy=99), SOFTMAX).diagnostic
    assert problem.blame is Blame.BUILD_FILE
    assert "occupancy should be [1, 32]" in problem.fact


def test_a_crash_of_the_front_end_is_a_refusal_too(front_end: FrontEnd) -> None:
    source = ONE_TILE.format(imports="twice = lambda t: t + t", tile="twice(tile)")
    problem = front_end.compile("copy", copy_signature(), source).diagnostic
    assert problem.blame is Blame.KERNEL
    assert problem.fact == "the cuTile front end fails here with AssertionError"
    assert str(problem.span) == "src.py:8:36"


UNSIGNED_DIVISION = """
import cuda.tile as ct

@ct.kernel
def divide(a, b, q, T: ct.Constant[int]):
    x = ct.load(a, index=(0,), shape=(T,))
    y = ct.load(b, index=(0,), shape=(T,))
    ct.store(q, index=(0,), tile=x // y)
"""


def test_code_that_the_vendors_tools_refuse_is_a_refusal(front_end: FrontEnd) -> None:
    vector = array_parameter("u32", [32], [1])
    answer = front_end.compile("divide", signature([vector, vector, vector, Constant(32)]), UNSIGNED_DIVISION)
    assert not answer.ok
    assert answer.byte_code == b""
    problem = answer.diagnostic
    assert problem.blame is Blame.KERNEL
    assert "'cuda_tile.divi' op rounding mode 'negative_inf' is not allowed" in problem.fact
    assert str(problem.span) == "src.py:8:34"
    assert "other operations or element types" in problem.help


def test_refused_code_without_a_place_is_told_at_the_kernel(
    front_end: FrontEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(byte_code: bytes, tool: str) -> str:
        raise InvalidByteCode("error: no such version\nerror: failed to read")

    monkeypatch.setattr(python_ir, "disassemble", refuse)
    problem = front_end.compile("softmax", softmax_signature(), SOFTMAX).diagnostic
    assert problem.fact.endswith(": no such version")
    assert str(problem.span) == "src.py:5:5"
