"""An action touches what it declares, and says what it lacks; each way of confining it, where it works."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import time
from dataclasses import replace

import pytest

from tests.execution.space import SH, Space, made, shell, statuses
from tilebuild import faults, landlock
from tilebuild.action import Action
from tilebuild.diagnostics import Diagnostic
from tilebuild.execution.executor import Execution
from tilebuild.execution.sandbox import BUBBLEWRAP, LANDLOCK, Sandbox


def works(kind: str) -> bool:
    if kind == LANDLOCK:
        return landlock.works()
    program = shutil.which("bwrap")
    command = [program or "", "--ro-bind", "/", "/", "true"]
    return program is not None and subprocess.run(command, capture_output=True).returncode == 0


@pytest.fixture(params=[LANDLOCK, BUBBLEWRAP])
def sandbox(request: pytest.FixtureRequest, space: Space) -> Sandbox:
    if not works(request.param):
        pytest.skip(f"{request.param} does not work here")
    found = Sandbox.open(space.root, space.scratch / "sandbox.json")
    return replace(found, kind=request.param)


def build(space: Space, sandbox: Sandbox | None, *actions: Action) -> Execution:
    return space.build(*actions, sandbox=sandbox)


def problem(execution: Execution) -> Diagnostic:
    return execution.outcomes[0].diagnostics[0]


def test_declared_files_are_read_and_outputs_written(space: Space, sandbox: Sandbox) -> None:
    text = space.write("a/in.txt", "x\n")
    action = shell("cat a/in.txt > out; echo $$ > $TMPDIR/t; rm $TMPDIR/t", [text], [made("out")])
    assert statuses(build(space, sandbox, action)) == {"out": "ran"}
    assert space.read("out") == "x\n"


@pytest.mark.parametrize("where", ["relative", "absolute"])
def test_an_undeclared_read_names_the_file_and_the_attribute(
    space: Space, sandbox: Sandbox, where: str
) -> None:
    space.write("helpers/table.json", "{}")
    path = "helpers/table.json" if where == "relative" else space.root / "helpers/table.json"
    found = problem(build(space, sandbox, shell(f"cat {path} > out", [], [made("out")], label="//:t")))
    assert found.fact == "Shell //:t reads helpers/table.json, which is not declared"
    assert found.help == "add it to `srcs` of //:t"


def test_nothing_outside_can_be_written(space: Space, sandbox: Sandbox) -> None:
    space.write("a.txt", "before")
    target = space.root / "a.txt"
    assert statuses(build(space, sandbox, shell(f"echo x > {target}", [], [made("out")]))) == {
        "out": "failed"
    }
    assert target.read_text() == "before"


def test_a_tool_may_use_what_it_names(space: Space, sandbox: Sandbox) -> None:
    folder = space.root.parent / "toolbox"
    folder.mkdir()
    (folder / "data").write_text("d")
    tool = replace(SH, reads=(str(folder),), writes=(str(space.root.parent / "cache"),))
    (space.root.parent / "cache").mkdir()
    script = f"cat {folder}/data > out; echo c > {space.root.parent}/cache/c"
    action = replace(shell(script, [], [made("out")]), tools=(tool,))
    assert statuses(build(space, sandbox, action)) == {"out": "ran"}
    assert (space.root.parent / "cache/c").read_text() == "c\n"


def test_outputs_are_the_same_with_and_without(space: Space, sandbox: Sandbox) -> None:
    action = shell("env | cut -d= -f1 | sort > e; ls -a > out", [], [made("out"), made("e")])
    with_it = build(space, sandbox, action)
    shutil.rmtree(space.store_folder)
    without = build(space, None, action)
    assert statuses(without) == {"out": "ran"}
    assert with_it.produced == without.produced


def test_what_fills_the_disk_is_no_result(space: Space) -> None:
    found = build(space, None, shell("echo cp: No space left on device >&2; exit 1", [], [made("out")]))
    assert found.outcomes[0].fault == faults.LOCAL_ENVIRONMENT
    assert problem(found).fact.startswith("no space left on device")


def test_it_costs_milliseconds(space: Space) -> None:
    """Landlock, per action, in one run; measured again when the machine is busy with other things."""
    if not landlock.works():
        pytest.skip("Landlock does not work here")
    sandbox = replace(Sandbox.open(space.root, space.scratch / "s.json"), kind=LANDLOCK)
    allowed = [_seconds(space, sandbox) for _ in range(3)]
    free = [_seconds(space, None) for _ in range(3)]
    extra = (min(allowed) - min(free)) * 1e3
    print(f"Landlock: {extra:.2f} ms per action, {min(allowed) / min(free):.2f} times")
    assert extra < 5


def _seconds(space: Space, sandbox: Sandbox | None) -> float:
    times = []
    for number in range(20):
        action = shell(f"echo {number} {time.time_ns()} > out", [], [made("out")])
        started = time.perf_counter()
        build(space, sandbox, action)
        times.append(time.perf_counter() - started)
    return statistics.median(times)
