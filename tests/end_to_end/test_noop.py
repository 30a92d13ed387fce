"""A build with nothing to do: answered from its memo, and never wrongly."""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.space import Space

UP_TO_DATE = "build: 1 target ok; nothing to do\n"

#: Runs the hot path in a fresh interpreter, and tells what it imported, opened and asked of the file system.
PROBE = """
import sys
before = set(sys.modules)
opened, asked = [], []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import os
from tilebuild import _boot
real = os.stat
os.stat = lambda path: asked.append(path) or real(path)
opened.clear()
text = _boot.recall(["tilebuild", *sys.argv[1:]], os.environ)
os.stat = real
imported, read = sorted(set(sys.modules) - before), list(opened)
import json
print(json.dumps({
    "text": text and text.decode(),
    "modules": imported,
    "opened": read,
    "asked": asked,
}))
"""

#: All that the hot path may import besides what the interpreter starts with.
IMPORTED = {"__future__", "_struct", "tilebuild", "tilebuild._boot"}


def probe(space: Space, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        cwd=space.root,
        env=space.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def settle() -> None:
    """Files written just now are not trusted for 20 ms."""
    time.sleep(0.05)


def built(space: Space, *patterns: str) -> None:
    """Builds until there is nothing to do: the second time, unless somebody edits the tool meanwhile."""
    settle()
    done = [space.ok("build", *(patterns or ("//text:count",))) for _ in range(2)]
    while "nothing to do" not in done[-1].out and len(done) < 6:
        done.append(space.ok("build", *(patterns or ("//text:count",))))
    assert "nothing to do" in done[-1].out


def test_the_second_build_does_nothing(space: Space) -> None:
    built(space)
    assert space.ok("build", "//text:count").out == (
        "//text:count  ok\n  tilebuild-out/text/count/count.txt\n" + UP_TO_DATE
    )


def test_nothing_heavy_is_imported_and_nothing_else_is_read(space: Space) -> None:
    built(space)
    found = probe(space, "build", "//text:count")
    assert found["text"].endswith(UP_TO_DATE)
    assert set(found["modules"]) - IMPORTED == set()
    (opened,) = found["opened"]
    assert "/.tilebuild/memo/" in opened


def test_each_file_is_asked_for_once(space: Space) -> None:
    """One stat call per input, output and folder."""
    built(space)
    asked = probe(space, "build", "//text:count")["asked"]
    assert len(asked) == len(set(asked))
    ours = [path for path in asked if not path.startswith("/")]
    assert {"tilebuild.toml", "text/BUILD", "text/in.txt", ".", "text"} <= set(ours)
    assert "tilebuild-out/text/count/count.txt" in ours
    assert "tilebuild-out/text/upper/upper.txt" not in ours, "what is not published is in the cache only"


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_system_calls_are_the_stat_calls_and_one_file(space: Space, tmp_path: Path) -> None:
    built(space)
    trace = tmp_path / "trace"
    script = "from tilebuild._boot import main; open('/dev/null'); main()"
    done = subprocess.run(
        ["strace", "-f", "-o", str(trace), sys.executable, "-c", script, "build", "//text:count"],
        cwd=space.root,
        env=space.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if "ptrace" in done.stderr:
        pytest.skip("tracing is forbidden here")
    assert done.stdout.endswith(UP_TO_DATE)
    calls = trace.read_text().splitlines()
    start = next(at for at, line in enumerate(calls) if '"/dev/null"' in line)
    tail = calls[start + 1 :]
    opened = [line for line in tail if "openat(" in line and "ENOENT" not in line]
    assert len(opened) == 1, opened
    by_name = re.compile(r" (newfstatat|stat|statx)\((?!.*AT_EMPTY_PATH)")
    stats = [line for line in tail if by_name.search(line)]
    assert len(stats) == len(probe(space, "build", "//text:count")["asked"])


Edit = Callable[[Space], object]


def rewrite(space: Space) -> None:
    """Equal size and restored times."""
    file = space.root / "text/in.txt"
    times = file.stat()
    file.write_text("x\ny\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def replace(space: Space) -> None:
    (space.root / "new").write_text("x\ny\n")
    os.replace(space.root / "new", space.root / "text/in.txt")


def replace_output(space: Space) -> None:
    (space.root / "tilebuild-out/text/count/count.txt").unlink()
    space.write("tilebuild-out/text/count/count.txt", "2\n")


EDITS: dict[str, Edit] = {
    "source edited": lambda space: space.write("text/in.txt", "x\n"),
    "source rewritten with equal size and time": rewrite,
    "source replaced": replace,
    "source deleted": lambda space: (space.root / "text/in.txt").unlink(),
    "BUILD file edited": lambda space: space.write("text/BUILD", "# nothing\n"),
    "settings edited": lambda space: space.write("tilebuild.toml", 'architectures = ["sm_90"]\n'),
    "output deleted": lambda space: (space.root / "tilebuild-out/text/count/count.txt").unlink(),
    "output replaced": replace_output,
    "all outputs removed": lambda space: space.ok("clean"),
    "mode changed": lambda space: (space.root / "text/in.txt").chmod(0o755),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_change_is_noticed(space: Space, name: str) -> None:
    built(space)
    EDITS[name](space)
    assert not space.run("build", "//text:count").out.endswith("nothing to do\n")


def test_a_package_added_below_a_wildcard_is_noticed(space: Space) -> None:
    built(space, "//...")
    space.write("deep/down/BUILD", 'genrule(name = "new", outs = ["n"], cmd = "echo > $@")')
    assert "//deep/down:new  ok" in space.ok("build", "//...").out


def test_a_touched_file_costs_one_check(space: Space) -> None:
    built(space)
    (space.root / "text/in.txt").touch()
    settle()
    assert space.ok("build", "//text:count").counts == {"cached": 2}
    assert "nothing to do" in space.ok("build", "//text:count").out


def test_another_command_has_its_own_memo(space: Space) -> None:
    built(space)
    assert space.ok("build", "//text:upper").counts == {"cached": 1}
    assert space.ok("build", ":count", cwd="text").counts == {"cached": 2}
    assert "nothing to do" in space.ok("build", ":count", cwd="text").out
    assert "nothing to do" in space.ok("build", "//text:count").out
    assert "nothing to do" not in space.run("build", "//text:count", environment={"NO_COLOR": "1"}).out


def test_a_failure_is_never_remembered(space: Space) -> None:
    space.write("bad/BUILD", 'genrule(name = "bad", outs = ["x"], cmd = "exit 3")')
    settle()
    for _ in range(2):
        assert space.run("build", "//bad").code == 1


def test_a_file_edited_while_it_is_built_is_noticed(space: Space) -> None:
    edit = f"echo later > {space.root}/text/in.txt; cat $(SRCS) > $@"
    space.write("text/BUILD", f'genrule(name = "count", srcs = ["in.txt"], outs = ["o"], cmd = "{edit}")')
    settle()
    space.ok("build", "//text:count", "--no-sandbox")
    assert space.read("text/count/o") == "a\nb\n"
    space.ok("build", "//text:count", "--no-sandbox")
    assert space.read("text/count/o") == "later\n"


@pytest.mark.parametrize("damage", [b"", b"tilebuild memo 1", b"garbage" * 100])
def test_a_damaged_memo_is_ignored(space: Space, damage: bytes) -> None:
    built(space)
    for memo in (space.root / "tilebuild-out/.tilebuild/memo").iterdir():
        memo.write_bytes(damage)
    assert space.ok("build", "//text:count").counts == {"cached": 2}
    assert "nothing to do" in space.ok("build", "//text:count").out


def test_a_no_op_costs_little_more_than_starting_python(space: Space) -> None:
    """At most 2.2 times, in one run; measured again when the machine is busy with other things."""
    for package in range(3):
        rules = "\n".join(
            f'genrule(name = "t{i}", srcs = ["f{i}"], outs = ["o{i}"], cmd = "cat $(SRCS) > $@")'
            for i in range(10)
        )
        space.write(f"p{package}/BUILD", rules)
        for i in range(10):
            space.write(f"p{package}/f{i}", str(i))
    built(space, "//...")
    ratios: list[float] = []
    while len(ratios) < 4 and min(ratios, default=9.9) > 2.2:
        ratios.append(_ratio(space))
    assert min(ratios) <= 2.2, ratios


def _ratio(space: Space) -> float:
    script = Path(sys.executable).with_name("tilebuild")
    noop = [str(script)] if script.exists() else [sys.executable, "-m", "tilebuild"]
    plain: list[float] = []
    ours: list[float] = []
    for _ in range(15):
        plain.append(_seconds(space, [sys.executable, "-c", "pass"]))
        ours.append(_seconds(space, [*noop, "build", "//..."]))
    return statistics.median(ours) / statistics.median(plain)


def _seconds(space: Space, command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=space.root, env=space.environment, stdout=subprocess.PIPE, check=True)
    return time.perf_counter() - began
