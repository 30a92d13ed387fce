"""What running actions means: hits, early cut-off, guards, failures, damage."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.execution.space import Space, made, shell, source, statuses
from tilebuild.action import Action, Tool
from tilebuild.cache.disk import DiskStore
from tilebuild.diagnostics import Blame, Diagnostic
from tilebuild.execution.executor import Execution, Options

UPPER = shell("tr a-z A-Z < in > up", [source("in")], [made("up")])
COUNT = shell("wc -l < up | tr -d ' ' > count", [made("up")], [made("count")])
REPORT = shell("echo lines: $(cat count) > report", [made("count")], [made("report")])


def facts(execution: Execution) -> list[str]:
    return [d.fact for o in execution.outcomes for d in o.diagnostics]


def test_a_chain_runs_then_hits(space: Space) -> None:
    space.write("in", "a\nb\n")
    assert statuses(space.build(UPPER, COUNT, REPORT)) == {"up": "ran", "count": "ran", "report": "ran"}
    assert space.read("up") == "A\nB\n"
    assert space.read("report") == "lines: 2\n"
    assert statuses(space.build(UPPER, COUNT, REPORT)) == {"up": "hit", "count": "hit", "report": "hit"}


def test_an_equal_output_cuts_off(space: Space) -> None:
    space.write("in", "a\nb\n")
    space.build(UPPER, COUNT, REPORT)
    space.write("in", "c\nd\n")
    assert statuses(space.build(UPPER, COUNT, REPORT)) == {"up": "ran", "count": "ran", "report": "hit"}
    space.write("in", "C\nD\n")
    assert statuses(space.build(UPPER, COUNT, REPORT)) == {"up": "ran", "count": "hit", "report": "hit"}


def test_outputs_are_read_only_and_come_back(space: Space) -> None:
    space.write("in", "a\n")
    space.build(UPPER)
    up = space.output / "up"
    assert up.stat().st_mode & 0o777 == 0o444
    up.unlink()
    assert statuses(space.build(UPPER)) == {"up": "hit"}
    assert space.read("up") == "A\n"


def test_an_untouched_output_keeps_its_inode(space: Space) -> None:
    space.write("in", "a\n")
    space.build(UPPER)
    before = (space.output / "up").stat()
    space.build(UPPER)
    after = (space.output / "up").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_an_output_edited_in_place_is_repaired(space: Space) -> None:
    space.write("in", "a\n")
    space.build(UPPER)
    up = space.output / "up"
    up.chmod(0o644)
    up.write_text("X\n")  # goes through the link into the store
    assert statuses(space.build(UPPER)) == {"up": "ran"}
    assert space.read("up") == "A\n"


def test_a_file_in_place_of_an_output_folder_gives_way(space: Space) -> None:
    space.write("in", "a\n")
    space.output.mkdir()
    (space.output / "deep").write_text("stale")
    space.build(shell("mkdir -p deep; cat in > deep/out", [source("in")], [made("deep/out")]))
    assert space.read("deep/out") == "a\n"


def test_damaged_results_are_made_anew(space: Space) -> None:
    space.write("in", "a\n")
    space.build(UPPER, COUNT)
    for file in DiskStore(space.store_folder).root.glob("cas/*/*"):
        file.chmod(0o644)
        file.write_bytes(b"")
    assert statuses(space.build(UPPER, COUNT)) == {"up": "ran", "count": "ran"}
    assert space.read("count") == "1\n"


def test_an_executable_output_can_run(space: Space) -> None:
    tool = shell("printf '#!/bin/sh\\necho hi > $1\\n' > tool; chmod +x tool", [], [made("tool")])
    use = shell("./tool said", [made("tool")], [made("said")])
    for _ in range(2):
        space.build(tool, use)
        assert space.read("said") == "hi\n"
        assert os.access(space.output / "tool", os.X_OK)


def test_equal_work_of_two_targets_runs_once(space: Space) -> None:
    one = shell("sleep 0.1; echo x > out", [], [made("a")])
    actions = [
        Action("Shell", one.argv, (), (("out", made(name)),), one.tools, label=f"//:{name}") for name in "abc"
    ]
    execution = space.build(*actions)
    assert sorted(statuses(execution).values()) == ["hit", "hit", "ran"]
    assert space.read("c") == "x\n"


def test_a_guard_that_is_empty_skips(space: Space) -> None:
    asked = shell("printf '' > next", [], [made("next")])
    lower = shell("echo lower > rung1", [], [made("rung1")], guard=made("next"))
    choose = shell("ls > choice", [], [made("choice")], optional=[made("rung1")])
    assert statuses(space.build(asked, lower, choose)) == {"next": "ran", "rung1": "skipped", "choice": "ran"}
    assert "rung1" not in space.read("choice")
    wanted = shell("echo go > next", [], [made("next")])
    assert statuses(space.build(wanted, lower, choose))["rung1"] == "ran"
    assert "rung1" in space.read("choice")


def test_what_needs_a_skipped_output_is_skipped(space: Space) -> None:
    asked = shell("printf '' > next", [], [made("next")])
    lower = shell("echo lower > rung1", [], [made("rung1")], guard=made("next"))
    judged = shell("cp rung1 judged", [made("rung1")], [made("judged")])
    assert statuses(space.build(asked, lower, judged)) == {
        "next": "ran",
        "rung1": "skipped",
        "judged": "skipped",
    }


def test_a_failure_blocks_what_needs_it(space: Space) -> None:
    bad = shell("echo oops >&2; exit 3", [], [made("bad")])
    after = shell("cp bad after", [made("bad")], [made("after")])
    execution = space.build(bad, after)
    assert statuses(execution) == {"bad": "failed", "after": "blocked"}
    (diagnostic,) = execution.outcomes[0].diagnostics
    assert diagnostic.fact == "Shell //:t exited with status 3"
    assert diagnostic.notes[0].message == "it printed\n    oops"
    assert statuses(space.build(bad)) == {"bad": "failed"}, "failures are not cached"


def test_without_keep_going_nothing_new_starts(space: Space) -> None:
    bad = shell("exit 1", [], [made("bad")])
    slow = shell("echo ok > ok", [], [made("ok")])
    one_at_a_time = Options(jobs=1)
    assert statuses(space.build(bad, slow, options=one_at_a_time)) == {"bad": "failed", "ok": "cancelled"}
    keep_going = Options(jobs=1, keep_going=True)
    assert statuses(space.build(bad, slow, options=keep_going)) == {"bad": "failed", "ok": "ran"}


def test_a_missing_output_is_named(space: Space) -> None:
    execution = space.build(shell("echo x > a", [], [made("a"), made("b"), made("c")]))
    assert facts(execution) == ["Shell //:t succeeded without making 'b', 'c'"]


def test_diagnostics_of_a_tool_are_passed_on(space: Space) -> None:
    told = Diagnostic("exp needs a float", Blame.KERNEL, help="convert first")
    script = f"cat > \"$TILEBUILD_DIAGNOSTICS\" <<'END'\n{json.dumps([told.to_json()])}\nEND\nexit 1"
    execution = space.build(shell(script, [], [made("x")]))
    assert execution.outcomes[0].diagnostics == (told,)


def test_a_crash_is_the_tools_fault(space: Space) -> None:
    (diagnostic,) = space.build(shell("kill -SEGV $$", [], [made("x")])).outcomes[0].diagnostics
    assert diagnostic.blame is Blame.TOOLCHAIN
    assert diagnostic.fact == "Shell //:t was ended by SIGSEGV"


def test_a_time_limit_ends_the_whole_group(space: Space) -> None:
    started = time.monotonic()
    execution = space.build(shell("sleep 60 & sleep 60", [], [made("x")], timeout_s=0.3))
    assert facts(execution) == ["Shell //:t was stopped after 0.3 s"]
    assert time.monotonic() - started < 10


def test_a_missing_tool_is_one_clear_error(space: Space) -> None:
    gone = Tool("gone", digest="1", path="/nonexistent/gone")
    action = Action("Use", ("gone",), (), (("x", made("x")),), (gone,))
    assert facts(space.build(action)) == [
        "cannot start the tool 'gone' (/nonexistent/gone): No such file or directory"
    ]


def test_a_missing_source_is_one_clear_error(space: Space) -> None:
    (fact,) = facts(space.build(UPPER))
    assert fact.startswith("Shell //:t needs ")
    assert fact.endswith("/in: No such file or directory")


def test_an_action_sees_its_inputs_only(space: Space) -> None:
    space.write("in", "a\n")
    space.write("undeclared", "b\n")
    space.build(
        shell("ls -A > seen; env | cut -d= -f1 | sort > names", [source("in")], [made("seen"), made("names")])
    )
    assert space.read("seen").split() == ["in", "seen"]
    names = {name for name in space.read("names").split() if not name.startswith("TILEBUILD_")}
    assert names <= {
        "HOME", "LANG", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PATH", "PWD", "OLDPWD", "SHLVL", "_",
        "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "TMPDIR",
    }  # fmt: skip


def test_a_source_that_changes_meanwhile_gives_no_wrong_hit(space: Space) -> None:
    space.write("in", "old\n")
    execution = space.build(
        shell(f"echo new > {space.root}/in; cat in > out", [source("in")], [made("out")]),
    )
    assert statuses(execution) == {"out": "ran"}
    assert space.read("out") == "old\n", "the action reads the copy that was hashed"
    again = space.build(shell(f"echo new > {space.root}/in; cat in > out", [source("in")], [made("out")]))
    assert statuses(again) == {"out": "ran"}
    assert space.read("out") == "new\n"


def test_a_serial_resource_is_held_by_one(space: Space) -> None:
    log = space.root / "log"
    script = f"echo + >> {log}; sleep 0.05; echo - >> {log}; echo x > {{0}}"
    space.build(*(shell(script.format(name), [], [made(name)], serial="cargo") for name in "abcd"))
    assert log.read_text().split() == ["+", "-"] * 4


def test_a_dry_run_runs_nothing(space: Space) -> None:
    space.write("in", "a\nb\n")
    plan = Options(dry_run=True)
    assert statuses(space.build(UPPER, COUNT, options=plan)) == {"up": "would run", "count": "may run"}
    assert not (space.output / "up").exists()
    space.build(UPPER, COUNT)
    assert statuses(space.build(UPPER, COUNT, options=plan)) == {"up": "hit", "count": "hit"}


def test_why_an_action_ran(space: Space) -> None:
    space.write("in", "a\n")
    assert space.build(UPPER).outcomes[0].why == ("it has not been built here before",)
    assert space.build(UPPER).outcomes[0].why == ()
    space.write("in", "b\n")
    assert space.build(UPPER).outcomes[0].why == ("input in changed",)
    other = shell("tr a-z A-Y < in > up", [source("in")], [made("up")])
    (line,) = space.build(other).outcomes[0].why
    assert line == "argument 2 changed from 'tr a-z A-Z < in > up' to 'tr a-z A-Y < in > up'"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_is_finished(space: Space, number: int) -> None:
    quick = shell("echo x > quick", [], [made("quick")])
    slow = shell(f"echo $$ > {space.root}/pid; sleep 60; echo x > slow", [], [made("slow")])
    timer = threading.Timer(1.0, os.kill, (os.getpid(), number))
    timer.start()
    started = time.monotonic()
    execution = space.build(quick, slow, options=Options(jobs=1))
    assert time.monotonic() - started < 20
    assert execution.interrupted
    assert statuses(execution) == {"quick": "ran", "slow": "cancelled"}
    pid = int((space.root / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists()
    assert statuses(space.build(quick)) == {"quick": "hit"}
