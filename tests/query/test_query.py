"""The query language: grammar, every function, every format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.loading.space import Space
from tilebuild.diagnostics import DiagnosticError
from tilebuild.query.expression import parse, patterns
from tilebuild.query.functions import FUNCTIONS
from tilebuild.query.output import FORMATS

FILES = {
    "defs.bzl": "def made(name):\n"
    "    native.genrule(name = name, outs = [name + '.txt'], cmd = 'true', srcs = [':lib'])\n",
    "BUILD": 'load("//:defs.bzl", "made")\n'
    'package(default_visibility = ["//visibility:public"])\n'
    'filegroup(name = "lib", srcs = ["a.py", "//k:base"])\n'
    'filegroup(name = "app", srcs = [":lib", ":gen.txt"], tags = ["gpu", "slow"])\n'
    'made("gen")\n'
    'filegroup(name = "alone")\n'
    'test_suite(name = "tests", tests = [":op"])\n'
    'tile_operator(name = "op", src = "a.py", cases = ["c.json"])\n',
    "a.py": "",
    "c.json": "[]",
    "k/BUILD": 'filegroup(name = "base", srcs = ["b.py"], visibility = ["//visibility:public"])\n'
    'filegroup(name = "inner", srcs = [":base"])\n',
    "k/b.py": "",
}


@pytest.fixture
def workspace(space: Space) -> Space:
    space.write_all(FILES)
    return space


QUERIES = [
    ("//:app", "//:app"),
    ("deps(//:lib)", "//:a.py //:lib //k:b.py //k:base"),
    ("deps(//:app, 0)", "//:app"),
    ("deps(//:app, 1)", "//:app //:gen.txt //:lib"),
    ("rdeps(//..., //k:base)", "//:app //:gen //:gen.txt //:lib //k:base //k:inner"),
    ("rdeps(//:all, //k:base, 1)", "//:lib //k:base"),
    ("rdeps(//:alone, //k:base)", ""),
    ("allrdeps(//:lib) ^ //:*", "//:app //:gen //:gen.txt //:lib"),
    ("allrdeps(//:lib, 1) ^ //:*", "//:app //:gen //:lib"),
    ("somepath(//:app, //k:b.py)", "//:app //:lib //k:base //k:b.py"),
    ("somepath(//:alone, //k:b.py)", ""),
    ("allpaths(//:app, //k:base)", "//:app //:gen //:gen.txt //:lib //k:base"),
    ("some(//k:all)", "//k:base"),
    ("some(//k:all, 2)", "//k:base //k:inner"),
    ("same_pkg_direct_rdeps(//k:base)", "//k:inner"),
    ("siblings(//k:base)", "//k:BUILD //k:b.py //k:base //k:inner"),
    ("buildfiles(//:lib)", "//:BUILD //:defs.bzl"),
    ("loadfiles(//:lib)", "//:defs.bzl"),
    ("kind('source file', deps(//:lib))", "//:a.py //k:b.py"),
    ("kind(generated, //:*)", "//:gen.txt"),
    ("kind(rule, //k:*)", "//k:base //k:inner"),
    ("filter('app|lib', //:all)", "//:app //:lib"),
    ("attr(srcs, '//k:base', //...)", "//:lib //k:inner"),
    ("attr(tags, '[\\[ ]gpu[,\\]]', //...)", "//:app //:op.benchmark //:op.gpu_test"),
    ("attr(name, '^inner$', //...)", "//k:inner"),
    ("attr(nosuch, x, //...)", ""),
    ("labels(srcs, //:app)", "//:gen.txt //:lib"),
    ("labels(outs, //:gen)", "//:gen.txt"),
    ("tests(//:op)", "//:op.benchmark //:op.cpu_test //:op.gpu_test"),
    ("tests(//:tests)", "//:op.benchmark //:op.cpu_test //:op.gpu_test"),
    ("tests(//...)", "//:op.benchmark //:op.cpu_test //:op.gpu_test"),
    ("tagged('gpu,-fast', //...)", "//:app //:op.benchmark //:op.gpu_test"),
    ("tagged('-gpu', //k:all)", "//k:base //k:inner"),
    ("set(//:lib //k:base)", "//:lib //k:base"),
    ("set()", ""),
    ("//k:all - //k:base", "//k:inner"),
    ("//k:all except //k:base", "//k:inner"),
    ("//k:base + //:lib", "//:lib //k:base"),
    ("//k:base union //:lib", "//:lib //k:base"),
    ("//k:all ^ //k:base", "//k:base"),
    ("//k:all intersect //k:base", "//k:base"),
    ("//k:all - //k:all ^ //k:base", ""),
    ("//k:all - (//k:all ^ //k:base)", "//k:inner"),
    ("let x = //k:all in $x - //k:base", "//k:inner"),
    ("let x = //k:all in let y = //k:base in $x ^ $y", "//k:base"),
    ("'//k:base'", "//k:base"),
    ("k/b.py", "//k:b.py"),
]


@pytest.mark.parametrize(("text", "labels"), QUERIES)
def test_queries(workspace: Space, text: str, labels: str) -> None:
    assert workspace.query(text).split() == labels.split()


def test_every_function_has_a_query() -> None:
    asked = " ".join(text for text, _ in QUERIES)
    assert [name for name in FUNCTIONS if f"{name}(" not in asked] == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("deps(//:a", "query:1:10: BUILD file error: expected ',', but the query ends"),
        ("dep(//:a)", "query:1:1: BUILD file error: there is no function 'dep'"),
        ("kind('x, //:a)", "query:1:6: BUILD file error: this quote is never closed"),
        ("deps(//:a, 1, 2)", "query:1:15: BUILD file error: too many arguments: deps(x [, depth])"),
        ("deps(//:a, many)", "query:1:12: BUILD file error: 'many' is no number"),
        ("rdeps(//:a)", "query:1:11: BUILD file error: too few arguments: rdeps(universe, x [, depth])"),
        ("//:a //:b", "query:1:6: BUILD file error: unexpected '//:b' after the end of the query"),
        ("$x", "query:1:1: BUILD file error: '$x' is not bound by a let"),
        ("let x = //:a", "query:1:13: BUILD file error: expected 'in', but the query ends"),
        ("", "query:1:1: BUILD file error: the query ends too early"),
        ("-//:a", "query:1:1: BUILD file error: unexpected '-'"),
        ("set(//:a, //:b)", "query:1:9: BUILD file error: expected ')', but ',' stands there"),
        ("//:a & //:b", "query:1:6: BUILD file error: unexpected character '&'"),
    ],
)
def test_malformed_queries(text: str, error: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse(text)
    assert str(caught.value).splitlines()[0] == error


def test_an_error_shows_the_query_with_a_caret() -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse("deps(//:a) + dep(//:b)")
    assert str(caught.value).splitlines()[1:] == [
        "    deps(//:a) + dep(//:b)",
        "                 ^^^",
        "  help: did you mean 'deps'?",
    ]


@pytest.mark.parametrize("text", ["kind('(', //:lib)", "some(set())", "//:nosuch", "//nowhere/..."])
def test_queries_without_an_answer(workspace: Space, text: str) -> None:
    with pytest.raises(DiagnosticError):
        workspace.query(text)


def test_patterns_of_a_query() -> None:
    text = "let x = deps(//a:b) in kind('rule', $x) + set(//c //d/...) - rdeps(//..., //a:b, 3)"
    assert patterns(parse(text)) == ("//a:b", "//c", "//d/...", "//...")


OUTPUTS = {
    "label": "//:app\n//:gen\n//:gen.txt\n",
    "label_kind": "filegroup rule //:app\ngenrule rule //:gen\ngenerated file //:gen.txt\n",
    "location": "BUILD:4:1: filegroup rule //:app\nBUILD:5:1: genrule rule //:gen\n"
    "BUILD:5:1: generated file //:gen.txt\n",
    "package": "\n",
    "graph": 'digraph mygraph {\n  node [shape=box];\n  "//:app"\n  "//:app" -> "//:gen.txt"\n'
    '  "//:gen"\n  "//:gen.txt"\n  "//:gen.txt" -> "//:gen"\n}\n',
    "mermaid": 'graph LR\n  n0["//:app"]\n  n1["//:gen"]\n  n2["//:gen.txt"]\n  n0 --> n2\n  n2 --> n1\n',
    "build": '# BUILD:4:1\nfilegroup(\n  name = "app",\n  srcs = ["//:lib", "//:gen.txt"],\n'
    '  tags = ["gpu", "slow"],\n)\n\n# BUILD:5:1\ngenrule(\n  name = "gen",\n  outs = ["//:gen.txt"],\n'
    '  cmd = "true",\n  srcs = ["//:lib"],\n  generator_function = "made",\n'
    '  generator_location = "BUILD:5:1",\n)\n\n',
}


@pytest.mark.parametrize("output", OUTPUTS)
def test_outputs(workspace: Space, output: str) -> None:
    assert workspace.query("set(//:app //:gen //:gen.txt)", output) == OUTPUTS[output]


def test_json(workspace: Space) -> None:
    [app, op] = json.loads(workspace.query("set(//:app //:op.cpu_test)", "json"))
    assert (app["label"], app["kind"], app["location"]) == ("//:app", "filegroup rule", "BUILD:4:1")
    assert app["deps"] == ["//:lib", "//:gen.txt"]
    assert app["attributes"]["tags"] == ["gpu", "slow"]
    assert (op["kind"], op["test"], op["declared_by"]) == ("tile_cpu_test rule", True, "//:op")


def test_every_format_has_a_test() -> None:
    assert set(FORMATS) == {*OUTPUTS, "json"}


def test_an_unknown_format(workspace: Space) -> None:
    with pytest.raises(DiagnosticError, match="did you mean 'graph'"):
        workspace.query("//:app", "grph")


def test_locations_begin_with_the_root(workspace: Space, tmp_path: Path) -> None:
    from tilebuild.query.evaluate import evaluate
    from tilebuild.query.output import render

    expression = parse("//:app")
    graph = workspace.load("//:app").graph
    assert render(evaluate(expression, graph), graph, "location", "/root").startswith("/root/BUILD:4:1: ")
