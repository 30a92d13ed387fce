"""The standard rules: attributes in, providers and actions out."""

from __future__ import annotations

import pytest

from tests.loading.space import Space
from tilebuild.label import Label
from tilebuild.loading import standard


def files(space: Space, label: str) -> list[str]:
    return [file.path for file in space.analyze(label).targets[Label.parse(label)].providers.files]


def test_filegroup_and_alias(space: Space) -> None:
    space.write_all(
        {
            "BUILD": 'filegroup(name = "g", srcs = ["b", "a", ":h"])\n'
            'filegroup(name = "h", srcs = ["a", "c"])\n'
            'alias(name = "other", actual = ":g")',
            **dict.fromkeys("abc", ""),
        }
    )
    assert files(space, "//:g") == ["b", "a", "c"]
    assert files(space, "//:other") == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("cmd", "argument"),
    [
        ("cat $(SRCS) > $@", "cat k/a k/b > k/g/out.txt"),
        ("cat $(location a) $(location :b)", "cat k/a k/b"),
        ("cat $(locations :both) > $(location out.txt)", "cat k/a k/b > k/g/out.txt"),
        ("echo $$HOME $$(date) > $(OUTS)", "echo $HOME $(date) > k/g/out.txt"),
    ],
)
def test_genrule(space: Space, cmd: str, argument: str) -> None:
    space.write_all(
        {
            "k/BUILD": f'genrule(name = "g", srcs = ["a", "b", ":both"], outs = ["out.txt"], cmd = "{cmd}")\n'
            'filegroup(name = "both", srcs = ["a", "b"])\nfilegroup(name = "user", srcs = [":out.txt"])',
            "k/a": "",
            "k/b": "",
        }
    )
    [action] = space.analyze("//k:g").actions
    assert action.argv == ("sh", "-e", "-c", argument)
    assert [name for name, _ in action.inputs] == ["k/a", "k/b"]
    assert files(space, "//k:user") == ["k/g/out.txt"]


def test_genrule_quotes_names(space: Space) -> None:
    space.write_all(
        {"BUILD": 'genrule(name = "g", srcs = ["a b"], outs = ["o"], cmd = "cat $< > $@")', "a b": ""}
    )
    assert space.analyze("//:g").actions[0].argv[-1] == "cat 'a b' > g/o"


def test_tile_library(space: Space) -> None:
    space.write_all(
        {
            "BUILD": 'tile_library(name = "all", srcs = ["m.py"], deps = ["//p:lib", "//p:inner"])',
            "m.py": "",
            "p/BUILD": 'package(default_visibility = ["//visibility:public"])\n'
            'tile_library(name = "lib", srcs = ["x.py"])\n'
            'tile_library(name = "inner", srcs = ["src/q/y.py"], imports = "src")\n'
            'tile_library(name = "here", srcs = ["x.py"], imports = ".")',
            "p/x.py": "",
            "p/src/q/y.py": "",
        }
    )

    def modules(label: str) -> dict[str, str]:
        library = space.analyze(label).targets[Label.parse(label)].providers["Library"]
        return {path: file.path for path, file in library.files.items()}

    assert modules("//:all") == {"m.py": "m.py", "p/x.py": "p/x.py", "q/y.py": "p/src/q/y.py"}
    assert modules("//p:here") == {"x.py": "p/x.py"}


@pytest.mark.parametrize(
    ("build", "error"),
    [
        ('tile_library(name = "l", srcs = ["a.txt"])', "a.txt is no Python file"),
        ('tile_library(name = "l", srcs = ["a.py"], imports = "src")', "a.py does not lie in 'src/'"),
        ('tile_library(name = "l", deps = [":g"])\nfilegroup(name = "g")', "does not provide Library"),
        (
            'tile_library(name = "l", deps = [":m", ":n"])\ntile_library(name = "m", srcs = ["a.py"])\n'
            'tile_library(name = "n", srcs = ["src/a.py"], imports = "src")',
            "two modules have the import path 'a.py'",
        ),
    ],
)
def test_what_tile_library_refuses(space: Space, build: str, error: str) -> None:
    space.write_all({"BUILD": build, "a.txt": "", "a.py": "", "src/a.py": ""})
    assert error in space.errors("//:l")


SUITES = """
load("//r:fake.py", "fake_test")
fake_test(name = "one", tags = ["quick"])
fake_test(name = "two", tags = ["slow"])
fake_test(name = "by_hand", tags = ["manual"])
test_suite(name = "every")
test_suite(name = "quick", tags = ["quick"])
test_suite(name = "not_slow", tests = [":one", ":two", ":by_hand"], tags = ["-slow"])
test_suite(name = "nested", tests = [":quick", ":two"])
"""


@pytest.mark.parametrize(
    ("suite", "tests"),
    [("every", "one two"), ("quick", "one"), ("not_slow", "one by_hand"), ("nested", "one two")],
)
def test_test_suite(space: Space, suite: str, tests: str) -> None:
    space.write_all(
        {
            "r/BUILD": "",
            "r/fake.py": "from pydantic import BaseModel\n"
            "from tilebuild.rule import Providers, RuleContext, rule\n"
            "class Attributes(BaseModel): ...\n"
            "@rule(attributes=Attributes, test=True)\n"
            "def fake_test(ctx: RuleContext[Attributes]) -> Providers:\n    return Providers()\n",
            "BUILD": SUITES,
        }
    )
    loaded = space.load(f"//:{suite}")
    assert [label.name for label in loaded.graph.tests(loaded.roots)] == tests.split()


def test_every_standard_rule_has_a_file() -> None:
    names = {path.stem for path in standard.folder().glob("*.py")} - {"__init__"}
    assert names == set(standard.STANDARD_RULES)
