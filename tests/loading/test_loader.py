"""From patterns to a target graph: packages, macros, selects, files, what is remembered for the no-op."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from random import Random

import pytest

from tests.loading.space import Space, tool
from tilebuild.analysis.analyzer import analyze
from tilebuild.diagnostics import DiagnosticError
from tilebuild.label import Label
from tilebuild.loading import globs
from tilebuild.loading.loader import load
from tilebuild.workspace import open_workspace


def deps(space: Space, label: str, *patterns: str) -> list[str]:
    graph = space.load(*(patterns or [label])).graph
    return [str(dep) for dep in graph[Label.parse(label)].deps]


@pytest.fixture
def tree(space: Space) -> Space:
    space.write_all(
        {
            "BUILD": 'filegroup(name = "root", srcs = ["//a:x", "//a/b:y"])',
            "a/BUILD": 'package(default_visibility = ["//visibility:public"])\n'
            'filegroup(name = "x", srcs = ["x.txt"])\n'
            'filegroup(name = "all", srcs = [])\n'
            'filegroup(name = "slow", srcs = ["d/z.txt"], tags = ["manual"])\n',
            "a/x.txt": "",
            "a/d/z.txt": "",
            "a/b/BUILD": 'filegroup(name = "y", srcs = ["y.txt"], visibility = ["//visibility:public"])',
            "a/b/y.txt": "",
            "food/BUILD.tile": 'filegroup(name = "food")',
            "food/BUILD": 'filegroup(name = "unread")',
            ".hidden/BUILD": "syntax error",
            "env/pyvenv.cfg": "",
            "env/BUILD": "syntax error",
            "inner/tilebuild.toml": "",
            "inner/BUILD": "syntax error",
            "tilebuild-out/a/BUILD": "syntax error",
        }
    )
    return space


@pytest.mark.parametrize(
    ("patterns", "cwd", "roots"),
    [
        (["//..."], "", "//:root //a:all //a:x //a/b:y //food:food"),
        (["//a/..."], "", "//a:all //a:x //a/b:y"),
        (["//a:x"], "", "//a:x"),
        (["//a:slow"], "", "//a:slow"),
        (["//a:all"], "", "//a:all"),
        (["//food"], "", "//food:food"),
        (["//a:*"], "", "//a:BUILD //a:all //a:d/z.txt //a:x //a:x.txt"),
        (["..."], "a", "//a:all //a:x //a/b:y"),
        ([":x"], "a", "//a:x"),
        (["x"], "a", "//a:x"),
        (["b"], "a", "//a/b:b"),
        (["b:y"], "a", "//a/b:y"),
        (["a/x.txt"], "", "//a:x.txt"),
        (["a/d/z.txt"], "", "//a:d/z.txt"),
        (["a/BUILD"], "", "//a:BUILD"),
        (["//...", "-//a/..."], "", "//:root //food:food"),
        (["//...", "-//a:x"], "", "//:root //a:all //a/b:y //food:food"),
        (["-//a:x", "//a:x"], "", "//a:x"),
        (["//a:x", "//a:x"], "", "//a:x"),
    ],
)
def test_patterns(tree: Space, patterns: list[str], cwd: str, roots: str) -> None:
    tree.write("a/b/b", "")
    assert tree.roots(*patterns, cwd=cwd) == roots.split()


def test_queries_see_manual_targets(tree: Space) -> None:
    assert "//a:slow" in tree.roots("//a/...", manual=True)


def test_a_macro_in_starlark(space: Space) -> None:
    space.write_all(
        {
            "tools/BUILD": "",
            "tools/defs.bzl": 'load(":more.bzl", _suffix = "suffix")\n'
            "def pair(name, **kwargs):\n"
            '    """Two groups."""\n'
            "    for kind in [1, 2]:\n"
            "        native.filegroup(name = name + _suffix(kind), **kwargs)\n",
            "tools/more.bzl": "def suffix(kind):\n    return '_%d' % kind\n",
            "k/BUILD": 'load("//tools:defs.bzl", "pair")\npair("g", srcs = glob(["*.py"]))\n',
            "k/a.py": "",
        }
    )
    loaded = space.load("//k:all")
    assert [str(root) for root in loaded.roots] == ["//k:g_1", "//k:g_2"]
    target = loaded.graph[Label("k", "g_2")]
    assert str(target.span) == "k/BUILD:2:1"
    assert [frame.function for frame in target.call_site.frames] == ["<module>", "pair"]
    assert [str(x) for x in loaded.graph.packages["k"].loads] == ["//tools:defs.bzl", "//tools:more.bzl"]


def test_a_rule_in_python(space: Space) -> None:
    space.write_all(
        {
            "rules/BUILD": "",
            "rules/cubin_size.py": "from pydantic import BaseModel\n"
            "from tilebuild.rule import Label, Providers, RuleContext, rule\n"
            'load("//rules:common.py", "STAMP")\n'
            "class Attributes(BaseModel):\n"
            "    operator: Label\n"
            "    limit_bytes: int = 65536\n"
            "@rule(attributes=Attributes)\n"
            "def cubin_size(ctx: RuleContext[Attributes]) -> Providers:\n"
            '    """Fails when a file is too large."""\n'
            "    files = ctx.files(ctx.attr.operator)\n"
            "    stamp = ctx.declare_output(ctx.label.name + STAMP)\n"
            '    ctx.action("CubinSize", argv=[ctx.tool("check_size"), *files, "--limit", '
            'ctx.attr.limit_bytes, "--out", stamp], inputs=files, outputs=[stamp])\n'
            "    return Providers(files=[stamp])\n",
            "rules/common.py": 'STAMP = ".txt"\n',
            "k/BUILD": 'load("//rules:cubin_size.py", "cubin_size")\n'
            'cubin_size(name = "size", operator = ":x", limit_bytes = 7)\n'
            'filegroup(name = "x", srcs = ["x.bin"])\n',
            "k/x.bin": "",
        }
    )
    [action] = space.analyze("//k:size").actions
    assert action.argv == ("check_size", "k/x.bin", "--limit", "7", "--out", "k/size/size.txt")
    first = space.load("//k:size")
    assert {"rules/cubin_size.py", "rules/common.py"} <= first.files_read.keys()
    rule = first.graph[Label("k", "size")].rule
    assert rule is not None
    assert rule.doc == "Fails when a file is too large."
    space.write("rules/common.py", 'STAMP = ".stamp"\n')
    changed = space.load("//k:size").graph[Label("k", "size")].rule
    assert changed is not None
    assert changed.digest != rule.digest


def test_standard_rules_by_label(space: Space) -> None:
    space.write("BUILD", 'load("@tilebuild//rules:filegroup.py", group = "filegroup")\ngroup(name = "g")')
    assert space.roots("//:g") == ["//:g"]


SELECT = """
config_setting(name = "hopper", values = {"architectures": "sm_90"})
config_setting(name = "old", values = {"architectures": "sm_80"})
config_setting(name = "hopper_one", values = {"architectures": "sm_90", "jobs": "1"})
filegroup(name = "g", srcs = ["a"] + select({":old": ["b"], ":hopper": ["c"], ":hopper_one": ["e"]}) + ["d"])
filegroup(name = "default", srcs = select({":old": ["b"], "//conditions:default": ["c"]}))
genrule(name = "cmd", outs = ["o"], cmd = select({":old": "old", ":hopper": "new"}))
"""


def test_select(space: Space) -> None:
    space.write_all({"BUILD": SELECT, "a": "", "b": "", "c": "", "d": "", "e": ""})
    analysis = space.analyze("//:all")
    files = {str(label): [f.path for f in t.providers.files] for label, t in analysis.targets.items()}
    assert files["//:g"] == ["a", "c", "d"]
    assert files["//:default"] == ["c"]
    assert analysis.actions[0].argv[-1] == "new"
    space.write("tilebuild.toml", "jobs = 1")
    assert [f.path for f in space.analyze("//:g").targets[Label("", "g")].providers.files] == ["a", "e", "d"]


def test_queries_see_all_branches_of_a_select(space: Space) -> None:
    space.write_all({"BUILD": SELECT, "a": "", "b": "", "c": "", "d": "", "e": ""})
    assert set(space.query("deps(//:g)").split()) == {
        *("//:g", "//:a", "//:b", "//:c", "//:d", "//:e", "//:hopper", "//:old", "//:hopper_one"),
    }


def test_value_functions_give_plain_data(space: Space) -> None:
    space.write_all(
        {
            "rules/BUILD": "",
            "rules/keep.py": "from typing import Any\nfrom pydantic import BaseModel\n"
            "from tilebuild.rule import Providers, RuleContext, rule\n"
            "class Attributes(BaseModel):\n    values: list[Any]\n"
            "@rule(attributes=Attributes)\n"
            "def keep(ctx: RuleContext[Attributes]) -> Providers:\n    return Providers()\n",
            "BUILD": 'load("//rules:keep.py", "keep")\n'
            'keep(name = "k", values = [array("f32", [2, 3], fill = normal()), output("bf16", (4,)), '
            "const(1.0), "
            'launch(kernel = "f", args = ["x", 3, True, 1e30], grid = (1,)), '
            'case("c", arrays = {"s": scratch("i32", [1])}, steps = [])])\n',
        }
    )
    values = space.load("//:k").graph[Label("", "k")].attributes["values"]
    assert values[0] == {
        "kind": "array",
        "role": "in",
        "dtype": "f32",
        "shape": [2, 3],
        "strides": None,
        "offset": 0,
        "fill": {"kind": "normal", "mean": 0.0, "std": 1.0},
        "alias_of": None,
        "index_dtype": "i32",
    }
    assert (values[1]["role"], values[1]["shape"]) == ("out", [4])
    assert values[2] == {"kind": "const", "value": 1.0}
    assert isinstance(values[2]["value"], float)
    assert values[3]["args"] == ["x", 3, True, 1e30]
    assert values[4]["arrays"]["s"]["role"] == "scratch"


def test_what_loading_depends_on_is_remembered(tree: Space) -> None:
    loaded = tree.load("//:root")
    assert {"BUILD", "a/BUILD", "a/b/BUILD", "tilebuild.toml"} <= loaded.files_read.keys()
    assert loaded.packages == ("", "a", "a/b")
    assert {"", "a", "a/b"} <= loaded.directories
    assert not any(path.startswith("food") for path in loaded.directories)


def test_files_of_an_installed_distribution(space: Space) -> None:
    space.write(
        "third_party/BUILD",
        'python_package(name = "click", distribution = "click", include = ["click/c*.py"])\n'
        'filegroup(name = "core", srcs = ["click/core.py"])\n',
    )
    analysis = space.analyze("//third_party:all")
    [core] = analysis.targets[Label("third_party", "core")].providers.files
    assert core.path == "external/click/click/core.py"
    assert Path(core.location).is_file()
    library = analysis.targets[Label("third_party", "click")].providers["Library"]
    assert library.files["click/core.py"] == core
    assert "click/utils.py" not in library.files
    assert any(path.endswith("RECORD") for path in space.load("//third_party:all").files_read)


def test_print_is_collected(space: Space) -> None:
    space.write("BUILD", 'print("a", 1)\n')
    assert space.load("//...").printed == ("BUILD:1: a 1",)


def test_an_endless_macro_can_be_interrupted(space: Space) -> None:
    space.write_all(
        {
            "m.bzl": "def spin():\n    for i in range(1000000000):\n        pass\n",
            "BUILD": 'load("//:m.bzl", "spin")\nspin()\n',
        }
    )
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        space.load("//...")
    timer.join()


def test_settings_file_in_pyproject(tmp_path: Path) -> None:
    space = Space(tmp_path)
    (space.root / "tilebuild.toml").unlink()
    space.write("pyproject.toml", "[tool.tilebuild]\n")
    space.write("BUILD", 'filegroup(name = "g")')
    assert "pyproject.toml" in space.load("//...").files_read


def test_errors_of_one_package_do_not_hide_those_of_another(space: Space) -> None:
    space.write("a/BUILD", 'filegroup(name = "x", nosuch = 1)')
    space.write("b/BUILD", 'filegroup(name = "y", srcs = ["missing"])')
    with pytest.raises(DiagnosticError) as caught:
        space.load("//...")
    assert [d.span.path for d in caught.value.diagnostics if d.span] == ["a/BUILD", "b/BUILD"]
    assert "no attribute 'nosuch'" in space.errors("//a:x")
    assert "no target '//a:z'" in space.errors("//a:x", "//a:z")
    assert "no target '//a:x'" not in space.errors("//a:x")


def test_keep_going_leaves_out_what_is_touched(space: Space) -> None:
    space.write_all(
        {
            "a/BUILD": 'filegroup(name = "good")\nfilegroup(name = "bad", nosuch = 1)\n'
            'filegroup(name = "user", srcs = [":bad"])\nfilegroup(name = "lost", srcs = ["missing"])\n'
            'filegroup(name = "round", srcs = [":round"])\nfilegroup(name = "near", srcs = [":round"])\n',
            "b/BUILD": "syntax error",
            "c/BUILD": 'filegroup(name = "far", srcs = ["//b:x"])\n'
            'filegroup(name = "fine", srcs = ["//a:good"])\n',
        }
    )
    workspace, settings = open_workspace(space.root, environ={})
    loaded = load(workspace, settings, ["//..."], keep_going=True)
    assert [str(root) for root in loaded.roots] == ["//a:good", "//c:fine"]
    assert [d.span.path for d in loaded.problems if d.span] == ["a/BUILD"] * 3 + ["b/BUILD"]
    analysis = analyze(loaded.graph, loaded.roots, settings, tool, keep_going=True)
    assert list(map(str, analysis.targets)) == ["//a:good"]
    assert "may not use //a:good" in analysis.problems[0].fact


def test_an_interruption_inside_a_function_of_the_tool_stays_one(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(globs, "glob", interrupted)
    space.write("BUILD", 'filegroup(name = "g", srcs = glob(["*"]))')
    with pytest.raises(KeyboardInterrupt):
        space.load("//...")


def test_any_text_is_loaded_or_refused_in_order(space: Space) -> None:
    """Damaged BUILD files give diagnostics and never another exception."""
    text = 'filegroup(name = "a", srcs = glob(["*"]) + select({"//conditions:default": ["x"]}))\n' * 3
    pieces = [*'"()[]{},=3:é\n\\', "", "//", "None", "select("]
    random = Random(7)
    space.write("x")
    for _ in range(60):
        at = random.randrange(len(text))
        damaged = text[:at] + random.choice(pieces) + text[at + random.choice((0, 1, 4)) :]
        space.write("BUILD", damaged)
        space.errors("//...")
