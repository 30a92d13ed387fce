"""What enters a key, what does not, and how a change is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tilebuild.action import Action, Artifact, Tool
from tilebuild.cache.digest import digest_of_bytes
from tilebuild.execution.fingerprint import Input, difference, fingerprint

ACTION = Action(
    mnemonic="Assemble",
    argv=("assemble", "--arch", "sm_90"),
    inputs=(("kernel.tilebc", Artifact("a/softmax.tilebc", source=False)),),
    outputs=(("kernel.cubin", Artifact("a/kernel.cubin", source=False)),),
    tools=(
        Tool("assemble", "1", module="tilebuild.tools.assemble"),
        Tool("tileiras", "13.4", path="/opt/tileiras"),
    ),
    inline=(("signature.json", b"{}"),),
    environment=(("LEVEL", "3"),),
    platform=(("gpu", "h200"),),
    label="//a:softmax",
    detail="softmax",
)
INPUT = Input("kernel.tilebc", digest_of_bytes(b"code"), origin="a/softmax.tilebc")

Change = Callable[[Action], Action]

IN_THE_KEY: dict[str, tuple[Change, str]] = {
    "argv": (
        lambda a: replace(a, argv=("assemble", "--arch", "sm_100")),
        "argument 2 changed from 'sm_90' to 'sm_100'",
    ),
    "an argument more": (lambda a: replace(a, argv=(*a.argv, "-v")), "argument 3 was added"),
    "environment": (lambda a: replace(a, environment=()), "environment LEVEL was removed"),
    "tool": (
        lambda a: replace(a, tools=(a.tools[0], replace(a.tools[1], digest="13.5"))),
        "tool tileiras changed",
    ),
    "inline": (
        lambda a: replace(a, inline=(("signature.json", b"[]"),)),
        "signature.json, derived from the BUILD file, changed",
    ),
    "outputs": (
        lambda a: replace(a, outputs=(*a.outputs, ("x", Artifact("a/x", source=False)))),
        "output x was added",
    ),
    "platform": (
        lambda a: replace(a, platform=(("gpu", "b200"),)),
        "platform gpu changed from 'h200' to 'b200'",
    ),
    "time limit": (lambda a: replace(a, timeout_s=5.0), "time limit changed from '600.0' to '5.0'"),
}
NOT_IN_THE_KEY: dict[str, Change] = {
    "mnemonic": lambda a: replace(a, mnemonic="Other"),
    "label": lambda a: replace(a, label="//b:other"),
    "detail": lambda a: replace(a, detail="other"),
    "serial resource": lambda a: replace(a, serial="cargo"),
    "guard": lambda a: replace(a, guard=Artifact("g", source=False)),
    "where outputs go": lambda a: replace(a, outputs=(("kernel.cubin", Artifact("b/k", source=False)),)),
    "where a tool lies": lambda a: replace(
        a, tools=(a.tools[0], replace(a.tools[1], path="/usr/bin/tileiras"))
    ),
    "the order of sets": lambda a: replace(a, tools=a.tools[::-1]),
}


def test_a_key_does_not_change_by_accident() -> None:
    """When this fails, every cache in the world is cold: change SALT only on purpose."""
    key = fingerprint(ACTION, [INPUT]).key
    assert str(key) == "5b7879dbb328a776345797a16f82fefe2cede82281a2715663f7b2c7ecd3ad45/164"


@pytest.mark.parametrize("name", IN_THE_KEY)
def test_what_changes_the_key_is_told(name: str) -> None:
    change, told = IN_THE_KEY[name]
    before, after = fingerprint(ACTION, [INPUT]), fingerprint(change(ACTION), [INPUT])
    assert before.key != after.key
    assert difference(before.facts, after.facts) == (told,)


@pytest.mark.parametrize("name", NOT_IN_THE_KEY)
def test_what_does_not_change_the_key(name: str) -> None:
    before, after = fingerprint(ACTION, [INPUT]), fingerprint(NOT_IN_THE_KEY[name](ACTION), [INPUT])
    assert before.key == after.key
    assert difference(before.facts, after.facts) == ()


def test_inputs_count_by_content_and_local_name() -> None:
    key = fingerprint(ACTION, [INPUT]).key
    assert fingerprint(ACTION, [replace(INPUT, origin="b/other")]).key == key
    assert fingerprint(ACTION, [replace(INPUT, digest=digest_of_bytes(b"x"))]).key != key
    assert fingerprint(ACTION, [replace(INPUT, name="other.tilebc")]).key != key
    assert fingerprint(ACTION, [replace(INPUT, executable=True)]).key != key
    assert fingerprint(ACTION, []).key != key


def test_a_changed_input_is_told_by_its_path() -> None:
    before = fingerprint(ACTION, [INPUT])
    after = fingerprint(ACTION, [replace(INPUT, digest=digest_of_bytes(b"x"))])
    assert difference(before.facts, after.facts) == ("input a/softmax.tilebc changed",)
