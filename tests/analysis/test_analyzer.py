"""From targets to actions: order, providers, what may not be."""

from __future__ import annotations

import pytest

from tests.loading.space import Space, tool
from tilebuild.action import Action, Artifact, Tool
from tilebuild.analysis.analyzer import analyze
from tilebuild.analysis.wiring import order, producers
from tilebuild.diagnostics import DiagnosticError
from tilebuild.label import Label
from tilebuild.settings import Settings
from tilebuild.target import TargetGraph

RULE = """
from pydantic import BaseModel
from tilebuild.rule import Derived, Label, Output, Providers, RuleContext, SourceFile, rule

class Attributes(BaseModel):
    src: SourceFile
    outs: list[Output] = []
    deps: list[Label] = []

def check(ctx: RuleContext[Attributes]) -> Providers:
    stamp = ctx.declare_output("stamp")
    files = ctx.parent.files
    ctx.action("Check", argv=[ctx.tool("sh"), *files], inputs=files, outputs=[stamp])
    return Providers(files=[stamp])

def derived(label, attributes):
    return [Derived("check", kind="step_check", function=check, test=True, tags=("quick",))]

@rule(attributes=Attributes, derived=derived)
def step(ctx: RuleContext[Attributes]) -> Providers:
    out = ctx.declare_output("out")
    before = ctx.files(ctx.attr.deps)
    ctx.action("Step", argv=[ctx.tool("sh"), ctx.file(ctx.attr.src), 3, out],
        inputs=[("src", ctx.file(ctx.attr.src)), *before], outputs=[("out", out)], detail="the step")
    for dep in ctx.attr.deps:
        ctx.provider(dep, "Step")
    return Providers(files=[out], Step=len(before))
"""


@pytest.fixture
def steps(space: Space) -> Space:
    space.write_all(
        {
            "r/BUILD": "",
            "r/step.py": RULE,
            "BUILD": 'load("//r:step.py", "step")\nstep(name = "b", src = "s", deps = [":a"])\n'
            'step(name = "a", src = "s")\n',
            "s": "",
        }
    )
    return space


def test_actions_come_after_those_they_need(steps: Space) -> None:
    analysis = steps.analyze("//:all")
    assert [action.label for action in analysis.actions if action.mnemonic == "Step"] == ["//:a", "//:b"]
    position = {action.label: index for index, action in enumerate(analysis.actions)}
    assert position["//:b"] < position["//:b.check"]


def test_local_names_stand_in_argv(steps: Space) -> None:
    [step] = steps.analyze("//:a").actions
    assert step.argv == ("sh", "src", "3", "out")
    assert step.inputs == (("src", Artifact("s")),)
    assert step.outputs == (("out", Artifact("a/out", source=False)),)
    assert (step.mnemonic, step.label, step.detail, step.tools) == ("Step", "//:a", "the step", (tool("sh"),))


def test_providers_and_producers(steps: Space) -> None:
    analysis = steps.analyze("//:b")
    assert analysis.targets[Label("", "b")].providers["Step"] == 1
    assert analysis.producer[Artifact("a/out", source=False)].label == "//:a"
    assert [action.label for action in analysis.needed([Label("", "a")])] == ["//:a"]
    assert [action.label for action in analysis.needed([Label("", "b")])] == ["//:a", "//:b"]


def test_derived_targets(steps: Space) -> None:
    analysis = steps.analyze("//:a.check")
    [_, check] = analysis.actions
    assert check.outputs == (("a.check/stamp", Artifact("a.check/stamp", source=False)),)
    target = analysis.targets[Label("", "a.check")].target
    assert (target.kind, target.test, target.parent) == ("step_check rule", True, Label("", "a"))
    assert "quick" in target.tags


def test_the_same_text_gives_the_same_actions(steps: Space) -> None:
    assert steps.analyze("//...").actions == steps.analyze("//...").actions


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (
            'step(name = "x", src = ":f")\nfilegroup(name = "f", srcs = ["s", "BUILD"])',
            "must be a single file, but has 2",
        ),
        ('step(name = "x", src = "s", deps = ["s"])', "//:s (source file) does not provide Step"),
        (
            'step(name = "x", src = "s", outs = ["o"])\nfilegroup(name = "g", srcs = ["o"])',
            "its rule does not declare it",
        ),
    ],
)
def test_what_a_rule_refuses(steps: Space, build: str, error: str) -> None:
    steps.write("BUILD", f'load("//r:step.py", "step")\n{build}')
    assert error in steps.errors("//:all")


BODIES = {
    "there is no tool 'nosuch'": 'ctx.tool("nosuch")',
    "output 'o' is declared twice": 'ctx.declare_output("o"); ctx.declare_output("o")',
    "argv must begin with a tool": 'ctx.action("X", argv=["sh"])',
    "is in argv, but neither input nor output": 'o = ctx.declare_output("o"); '
    'ctx.action("X", argv=[ctx.tool("sh"), o])',
    "two files have the local name 'l'": 'ctx.action("X", argv=[ctx.tool("sh")], inline={"l": b""}, '
    'outputs=[("l", ctx.declare_output("o"))])',
    "returned None, not Providers": "return None",
    "which no action makes": 'ctx.action("X", argv=[ctx.tool("sh")], inputs=[ctx.declare_output("o")])',
    "two actions make x/o": 'o = ctx.declare_output("o"); '
    '[ctx.action(m, argv=[ctx.tool("sh")], outputs=[o]) for m in "XY"]',
    "writes the source file y": 'ctx.action("X", argv=[ctx.tool("sh")], outputs=[Artifact("y")])',
    "actions need each other": 'a = ctx.declare_output("a"); b = ctx.declare_output("b"); '
    '[ctx.action(m, argv=[ctx.tool("sh")], inputs=[i], outputs=[o]) '
    'for m, i, o in (("X", a, b), ("Y", b, a))]',
    "rule wrong failed for //:x: KeyError: 'k'": '{}["k"]',
    "//:x: no": 'ctx.fail("no", "values", 1)',
}


@pytest.mark.parametrize("error", BODIES)
def test_mistakes_of_rule_authors(space: Space, error: str) -> None:
    space.write_all(
        {
            "r/BUILD": "",
            "r/wrong.py": "from pydantic import BaseModel\n"
            "from tilebuild.rule import Artifact, Providers, RuleContext, rule\n"
            "class Attributes(BaseModel):\n    values: list[int] = []\n"
            "@rule(attributes=Attributes)\n"
            "def wrong(ctx: RuleContext[Attributes]) -> Providers:\n"
            f"    {BODIES[error]}\n    return Providers()\n",
            "BUILD": 'load("//r:wrong.py", "wrong")\nwrong(name = "x", values = [1, 2])\n',
        }
    )
    assert error in space.errors("//:x")


def test_a_rule_points_into_its_attributes(space: Space) -> None:
    test_mistakes_of_rule_authors(space, "//:x: no")
    assert space.errors("//:x") == (
        'BUILD:2:32: BUILD file error: //:x: no\n    wrong(name = "x", values = [1, 2])\n' + " " * 35 + "^"
    )


def action(name: str, inputs: str, outputs: str, guard: str = "") -> Action:
    def files(names: str) -> tuple[tuple[str, Artifact], ...]:
        return tuple((n, Artifact(n, source=False)) for n in names)

    guarded = Artifact(guard, source=False) if guard else None
    return Action(
        name, ("sh",), files(inputs), files(outputs), (Tool("sh", "d"),), guard=guarded, label=f"//:{name}"
    )


def test_a_guard_is_a_need() -> None:
    last, first = action("last", "", "b", guard="a"), action("first", "", "a")
    producer = producers([last, first], TargetGraph({}, {}))
    assert order([last, first], producer) == (first, last)
    assert order([first], producer) == (first,)


def test_long_chains_do_not_overflow_the_stack() -> None:
    chain = [
        Action(
            "X",
            ("sh",),
            ((f"{i}", Artifact(f"{i}", source=False)),) if i else (),
            ((f"{i + 1}", Artifact(f"{i + 1}", source=False)),),
            (),
        )
        for i in range(5000)
    ]
    producer = {artifact: a for a in chain for _, artifact in a.outputs}
    assert order(chain[::-1], producer) == tuple(chain)


def test_an_empty_graph() -> None:
    assert analyze(TargetGraph({}, {}), (), Settings(), tool).actions == ()


def test_a_tool_is_looked_up_by_name(steps: Space) -> None:
    loaded = steps.load("//:a")
    with pytest.raises(DiagnosticError, match="there is no tool 'sh'"):
        analyze(loaded.graph, loaded.roots, Settings(), dict[str, Tool]().__getitem__)
