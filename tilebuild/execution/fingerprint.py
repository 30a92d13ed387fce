"""The key of an action, and the same facts as text for people. Knows nothing of stores or processes.

One walk over an action yields `Fact`s; the REAPI messages are made from them and from nothing else, so what
`why` shows is exactly what was hashed. A label, a path of this machine or the number of jobs is no fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilebuild.action import Action
from tilebuild.cache.digest import Digest, digest_of_bytes
from tilebuild.cache.reapi import FileEntry, encode_action, encode_command, encode_tree
from tilebuild.events import Fact

# Disowns all earlier results when the way tools are run changes their meaning.
SALT = b"1"

_EXECUTABLE = "+x"


@dataclass(frozen=True)
class Input:
    """A file the action will see: local name, content, and where it comes from (for people)."""

    name: str
    digest: Digest
    executable: bool = False
    origin: str = ""


@dataclass(frozen=True)
class Fingerprint:
    key: Digest
    facts: tuple[Fact, ...]


def fingerprint(action: Action, inputs: Sequence[Input]) -> Fingerprint:
    facts = tuple(_walk(action, inputs))
    platform = [(fact.name, fact.value) for fact in facts if fact.kind == "platform"]
    command = encode_command(
        arguments=[fact.value for fact in facts if fact.kind == "argument"],
        environment=[(fact.name, fact.value) for fact in facts if fact.kind == "environment"],
        output_paths=[fact.name for fact in facts if fact.kind == "output"],
        platform=platform,
    )
    root, _ = encode_tree(_file(fact) for fact in facts if fact.kind in ("input", "inline", "tool"))
    timeout_s = next(float(fact.value) for fact in facts if fact.kind == "time limit")
    encoded = encode_action(digest_of_bytes(command), root, timeout_s, SALT, platform)
    return Fingerprint(digest_of_bytes(encoded), facts)


def _walk(action: Action, inputs: Sequence[Input]) -> Iterator[Fact]:
    for position, argument in enumerate(action.argv):
        yield Fact("argument", str(position), argument)
    for name, value in sorted(action.environment):
        yield Fact("environment", name, value)
    for tool in sorted(action.tools, key=lambda tool: tool.name):
        # The identity of a tool is a small file of the input tree: a remote machine has its own copy of the
        # tool.
        yield Fact("tool", f".tools/{tool.name}", str(digest_of_bytes(tool.digest.encode())))
    for name, data in sorted(action.inline):
        yield Fact("inline", name, str(digest_of_bytes(data)))
    for file in sorted(inputs, key=lambda file: file.name):
        mark = _EXECUTABLE if file.executable else ""
        yield Fact("input", file.name, f"{file.digest}{mark}", file.origin)
    for name, _ in sorted(action.outputs):
        yield Fact("output", name, "")
    for name, value in sorted(action.platform):
        yield Fact("platform", name, value)
    yield Fact("time limit", "", str(action.timeout_s))


def _file(fact: Fact) -> FileEntry:
    executable = fact.value.endswith(_EXECUTABLE)
    return FileEntry(fact.name, Digest.parse(fact.value.removesuffix(_EXECUTABLE)), executable)


def difference(before: Sequence[Fact], after: Sequence[Fact]) -> tuple[str, ...]:
    """What changed between two explanations of one action, a line each; empty if nothing did."""
    old = {(fact.kind, fact.name): fact for fact in before}
    new = {(fact.kind, fact.name): fact for fact in after}
    lines = [f"{_describe(fact)} was removed" for place, fact in old.items() if place not in new]
    for place, fact in new.items():
        if place not in old:
            lines.append(f"{_describe(fact)} was added")
        elif old[place].value != fact.value:
            lines.append(f"{_describe(fact)} changed{_values(old[place], fact)}")
    return tuple(lines)


def _describe(fact: Fact) -> str:
    if fact.kind == "argument":
        return f"argument {fact.name}"
    if fact.kind == "tool":
        return f"tool {fact.name.removeprefix('.tools/')}"
    if fact.kind == "inline":
        return f"{fact.name}, derived from the BUILD file,"
    return f"{fact.kind} {fact.origin or fact.name}".rstrip()


def _values(before: Fact, after: Fact) -> str:
    if after.kind in ("input", "inline", "tool"):
        return ""
    return f" from {before.value!r} to {after.value!r}"
