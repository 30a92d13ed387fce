"""A command means the same in a fresh process and in a fork of the warm worker."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilebuild.execution.executor import BASE_ENVIRONMENT
from tilebuild.execution.process import Command, FreshProcesses, Runner, Running
from tilebuild.execution.worker import WarmWorker

TOOL = """
import os, sys, subprocess, time
from pathlib import Path

loads = 0

def warm_up():
    global loads
    loads += 1

def main(argv):
    if argv[0] == "state":
        global loads
        loads += 10
        Path("state").write_text(f"{loads} {sorted(os.environ)} {os.getcwd()} {sys.stdin.read()!r}")
    elif argv[0] == "print":
        print("out"); print("err", file=sys.stderr)
    elif argv[0] == "exit":
        sys.exit(int(argv[1]))
    elif argv[0] == "crash":
        os.abort()
    elif argv[0] == "fail":
        raise ValueError("wrong")
    elif argv[0] == "leave":
        child = subprocess.Popen(["sleep", "60"])
        Path("child").write_text(str(child.pid))
    elif argv[0] == "sleep":
        Path("pid").write_text(str(os.getpid()))
        time.sleep(60)
    return 0
"""


@pytest.fixture(params=["fresh", "warm"])
def runner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Runner]:
    environment = {**BASE_ENVIRONMENT, "PYTHONPATH": str(tmp_path)}
    install(tmp_path)
    found: Runner = FreshProcesses() if request.param == "fresh" else WarmWorker(environment)
    yield found
    found.close()


def install(folder: Path, text: str = TOOL) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "a_tool.py").write_text(text)


def command(folder: Path, *argv: str, module: str = "mine.a_tool") -> Command:
    return Command(
        argv=argv,
        folder=str(folder),
        environment={**BASE_ENVIRONMENT, "PYTHONPATH": str(folder), "ONLY": "this"},
        stdout=str(folder / "stdout"),
        stderr=str(folder / "stderr"),
        module=module,
    )


def finish(running: Running, limit_s: float = 30.0) -> int:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        with selectors.DefaultSelector() as selector:
            selector.register(running.fileno(), selectors.EVENT_READ)
            if selector.select(deadline - time.monotonic()):
                status = running.poll()
                if status is not None:
                    return status
    raise AssertionError("still runs")


def gone(pid: int) -> bool:
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


def test_a_tool_writes_its_files(runner: Runner, tmp_path: Path) -> None:
    assert finish(runner.start(command(tmp_path, "print"))) == 0
    assert (tmp_path / "stdout").read_text() == "out\n"
    assert (tmp_path / "stderr").read_text() == "err\n"


def test_nothing_leaks_from_one_action_to_the_next(runner: Runner, tmp_path: Path) -> None:
    seen = set()
    for _ in range(3):
        assert finish(runner.start(command(tmp_path, "state"))) == 0
        text = (tmp_path / "state").read_text()
        seen.add(text.partition(" ")[2])
        assert text.partition(" ")[0] in ("10", "11")
    (one,) = seen
    assert "'ONLY'" in one
    assert one.endswith("''"), "standard input is empty"


@pytest.mark.parametrize(
    ("argv", "status"), [(("exit", "3"), 3), (("crash",), -6), (("fail",), 1), (("print",), 0)]
)
def test_the_exit_status(runner: Runner, tmp_path: Path, argv: tuple[str, ...], status: int) -> None:
    assert finish(runner.start(command(tmp_path, *argv))) == status


def test_an_unknown_module_fails_with_its_error(runner: Runner, tmp_path: Path) -> None:
    assert finish(runner.start(command(tmp_path, module="no.such_tool"))) == 1
    assert "No module named 'no'" in (tmp_path / "stderr").read_text()


def test_what_a_tool_left_running_is_ended(runner: Runner, tmp_path: Path) -> None:
    assert finish(runner.start(command(tmp_path, "leave"))) == 0
    assert gone(int((tmp_path / "child").read_text()))


def test_a_command_can_be_killed(runner: Runner, tmp_path: Path) -> None:
    running = runner.start(command(tmp_path, "sleep"))
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        time.sleep(0.01)
    running.kill()
    assert finish(running) == -9
    assert gone(int((tmp_path / "pid").read_text()))


def test_two_commands_at_once(runner: Runner, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        install(folder)
    running = [runner.start(command(folder, "print")) for folder in folders]
    assert [finish(each) for each in running] == [0, 0]


def test_a_program_that_is_no_python_tool(runner: Runner, tmp_path: Path) -> None:
    assert finish(runner.start(command(tmp_path, "/bin/sh", "-c", "echo hi; exit 4", module=""))) == 4
    assert (tmp_path / "stdout").read_text() == "hi\n"


def test_a_worker_with_threads_refuses_and_fresh_processes_take_over(tmp_path: Path) -> None:
    threaded = (
        TOOL + "\nimport threading; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    )
    install(tmp_path, threaded)
    worker = WarmWorker({**BASE_ENVIRONMENT, "PYTHONPATH": str(tmp_path)})
    assert finish(worker.start(command(tmp_path, "print"))) == 0
    assert (tmp_path / "stdout").read_text() == "out\n"
    worker.close()


def test_a_worker_that_died_is_replaced(tmp_path: Path) -> None:
    install(tmp_path, TOOL + "\ndef warm_up(): os.kill(os.getpid(), 9)\n")
    worker = WarmWorker({**BASE_ENVIRONMENT, "PYTHONPATH": str(tmp_path)})
    for _ in range(2):
        assert finish(worker.start(command(tmp_path, "print"))) == 0
    worker.close()


def test_closing_ends_the_worker(tmp_path: Path) -> None:
    install(tmp_path)
    worker = WarmWorker({**BASE_ENVIRONMENT, "PYTHONPATH": str(tmp_path)})
    running = worker.start(command(tmp_path, "sleep"))
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        time.sleep(0.01)
    worker.close()
    assert gone(int((tmp_path / "pid").read_text()))
    os.close(running.fileno())
