"""What the machine is to blame for is told from what is wrong with a kernel, and never becomes a result."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.execution.space import Space, made
from tests.execution.test_runners import install
from tilebuild import faults
from tilebuild.action import Action, Tool
from tilebuild.events import Status
from tilebuild.execution.executor import BASE_ENVIRONMENT
from tilebuild.execution.worker import WarmWorker

RAISING = """
import errno, os

def main(argv):
    if argv[0] == "memory":
        raise MemoryError
    raise OSError(getattr(errno, argv[0]), os.strerror(getattr(errno, argv[0])), "/somewhere")
"""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError(), faults.OUT_OF_MEMORY),
        (OSError(errno.ENOMEM, "no memory"), faults.OUT_OF_MEMORY),
        (OSError(errno.ENOSPC, "full"), faults.LOCAL_ENVIRONMENT),
        (PermissionError(errno.EACCES, "no"), faults.LOCAL_ENVIRONMENT),
        (FileNotFoundError(errno.ENOENT, "gone"), 0),
        (ValueError("wrong"), 0),
    ],
    ids=repr,
)
def test_exit_codes(error: Exception, code: int) -> None:
    assert faults.exit_code(error) == code


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Failed to create temporary file: Permission denied", errno.EACCES),
        ("error: could not write: No space left on device (os error 28)", errno.ENOSPC),
        ("terminate called after throwing an instance of 'std::bad_alloc'", errno.ENOMEM),
        ("LLVM ERROR: out of memory", errno.ENOMEM),
        ("error: operand 2 has another type", 0),
    ],
)
def test_what_programs_say(text: str, number: int) -> None:
    found = faults.said_in(text, "tileiras")
    assert (found.errno if found else 0) == number


def test_what_a_program_says_is_told() -> None:
    text = "warning: slow\n  cc: cannot open /tmp/ccX.res: Permission denied\nerror: linking failed\n"
    found = faults.said_in(text, "cargo")
    assert found is not None
    fact = faults.diagnostic(found).fact
    assert fact == "permission denied: cargo: cc: cannot open /tmp/ccX.res: Permission denied"


@pytest.mark.parametrize(
    ("raised", "code", "fact"),
    [
        ("memory", 33, "out of memory"),
        ("ENOSPC", 36, f"{os.strerror(errno.ENOSPC).lower()}: /somewhere"),
        ("EROFS", 36, f"{os.strerror(errno.EROFS).lower()}: /somewhere"),
    ],
)
def test_a_tool_that_meets_one(space: Space, tmp_path: Path, raised: str, code: int, fact: str) -> None:
    install(tmp_path, RAISING)
    tool = Tool("raising", digest="1", module="mine.a_tool")
    action = Action("Raise", ("raising", raised), (), (("out", made("out")),), (tool,))
    worker = WarmWorker({**BASE_ENVIRONMENT, "PYTHONPATH": str(tmp_path)})
    try:
        (outcome,) = space.build(action, runner=worker).outcomes
    finally:
        worker.close()
    assert outcome.status is Status.FAILED
    assert outcome.fault == code
    assert outcome.diagnostics[0].fact == fact
