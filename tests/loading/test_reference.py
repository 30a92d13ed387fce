"""`docs/BUILD_REFERENCE.md` says what the code says: rules, attributes, defaults, functions and words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from tests.loading import test_example
from tests.loading.space import Space
from tilebuild import bound, case, grids, verdict
from tilebuild.label import Label
from tilebuild.loading import prelude
from tilebuild.loading.attributes import COMMON
from tilebuild.loading.standard import STANDARD_RULES
from tilebuild.tools.frontend import compiler

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/BUILD_REFERENCE.md").read_text()
ROW = re.compile(r"^\| `(.+?)` \| (.+?) \| .+ \|$", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")


def section(title: str) -> str:
    """The text under a heading, up to the next one."""
    _, _, rest = PAGE.partition(f"# {title}\n")
    assert rest, title
    return re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def words(start: str) -> list[str]:
    """What is in code marks in the paragraph that begins so."""
    (paragraph,) = (p for p in PAGE.split("\n\n") if p.startswith(start))
    return CODE.findall(paragraph)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, type[BaseModel]]:
    """The attributes of every standard rule, from the file that uses each once."""
    space = Space(tmp_path_factory.mktemp("space"))
    space.write("BUILD", test_example.EXAMPLE.read_text())
    space.write("rope.signatures.json", "[]")
    for file in test_example.FILES:
        space.write(file)
    targets = space.load("//...", manual=True).graph.targets.values()
    return {target.rule.name: target.rule.attributes for target in targets if target.rule is not None}


def default(value: Any) -> str:
    if value is None:
        return "none"
    return "see below" if isinstance(value, BaseModel) else f"`{json.dumps(value)}`"


def fields(model: type[BaseModel]) -> dict[str, str]:
    return {
        name: "required" if field.is_required() else default(field.get_default())
        for name, field in model.model_fields.items()
    }


@pytest.mark.parametrize("rule", STANDARD_RULES)
def test_rules_have_these_attributes(rule: str, models: dict[str, type[BaseModel]]) -> None:
    table = section(f"`{rule}`").partition("`gates` is a dict")[0]
    assert dict(ROW.findall(table)) == fields(models[rule])


def test_no_other_rule_is_named() -> None:
    assert set(re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE)) == set(STANDARD_RULES)


def test_gates(models: dict[str, type[BaseModel]]) -> None:
    gates = models["tile_operator"].model_fields["gates"].annotation
    assert isinstance(gates, type)
    assert issubclass(gates, BaseModel)
    table = section("`tile_operator`").partition("`gates` is a dict")[2]
    assert dict(ROW.findall(table)) == fields(gates)
    assert words("Evidence, best first") == list(verdict.EVIDENCE)


@pytest.mark.parametrize("title", ["Cases", "Fills", "Functions of a BUILD file"])
def test_functions_have_these_parameters(title: str) -> None:
    defined = re.findall(
        r"^def (\w+)\((.*?)\):$", prelude._NATIVE + prelude._VALUES, re.MULTILINE | re.DOTALL
    )
    signatures = {name: f"{name}({' '.join(given.split()).removesuffix(',')})" for name, given in defined}
    shown = re.findall(r"^\| `(\w+)(\(.*?\))` \|", section(title), re.MULTILINE)
    assert shown
    assert {name: name + given for name, given in shown} == {name: signatures[name] for name, _ in shown}


def test_every_function_is_named() -> None:
    named = set(re.findall(r"^\| `(\w+)\(", PAGE, re.MULTILINE))
    assert named == {*prelude._NATIVE_NAMES, *prelude._GLOBAL_NAMES, *prelude._VALUE_NAMES}


def test_words() -> None:
    assert words("Element types") == list(case._ARRAY_DTYPES)
    assert words("Hints: ") == list(compiler._HINT_NAMES)
    assert set(words("Each rule also takes")) >= set(COMMON)
    assert {"cdiv", "min", "max"} == set(grids._FUNCTIONS) <= set(words('`"cdiv(x.shape[0]'))
    (row,) = (line for line in PAGE.splitlines() if line.startswith("| `tolerance`"))
    assert CODE.findall(row)[2:] == list(bound.OVERRIDES)
    assert {get_args(field.annotation)[0] for field in fill_kinds()} == {
        {"full": "constant"}.get(name, name)
        for name in re.findall(r"^\| `(\w+)\(", section("Fills"), re.MULTILINE)
        if name not in ("ones", "zeros")
    }


def fill_kinds() -> list[Any]:
    union = get_args(get_args(case.Fill)[0])
    return [fill.model_fields["kind"] for fill in union]


def test_the_example_loads(space: Space) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    space.write("BUILD", "\n".join(blocks))
    for file in ("scale.py", "scale_reference.py"):
        space.write(file)
    target = space.load("//:scale").graph[Label("", "scale")]
    names = [case.read_case(item).name for item in target.attributes["cases"]]
    assert len(names) == len(set(names)) == 6
