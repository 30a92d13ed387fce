"""What is wrong with the machine and not with what it works on: full, read-only, forbidden, out of memory.

Such a failure says nothing of a kernel: it is never a result and never remembered. Knows no command; the
numbers are Bazel's exit codes, which tools use as well.
"""

from __future__ import annotations

import errno
import os
import re

from tilebuild.diagnostics import Blame, Diagnostic

OUT_OF_MEMORY = 33
LOCAL_ENVIRONMENT = 36

_FORBIDDEN = (errno.EACCES, errno.EPERM)
_LOCAL = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE),
        errno.EAGAIN,
        *_FORBIDDEN,
    }
)
_IN_WORDS = {os.strerror(number).lower(): number for number in (*_LOCAL, errno.ENOMEM)} | {
    "out of memory": errno.ENOMEM,
    "memory allocation of": errno.ENOMEM,
    "std::bad_alloc": errno.ENOMEM,
}
_HELP = {
    OUT_OF_MEMORY: "try -j 1; what was finished is kept",
    LOCAL_ENVIRONMENT: "what was finished is kept: build again when this is mended",
}
_SAID = re.compile("|".join(map(re.escape, _IN_WORDS)), re.IGNORECASE)


def exit_code(error: BaseException) -> int:
    """How a process ends that meets this error; 0 if the machine is not to blame."""
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ENOMEM:
        return OUT_OF_MEMORY
    return LOCAL_ENVIRONMENT if number in _LOCAL else 0


def said_in(text: str, program: str, *, forbidden: bool = True) -> OSError | None:
    """The error of the machine that a program names in its output, if any, with the line where it does;
    without `forbidden` none about permissions.
    """
    for match in _SAID.finditer(text):
        number = _IN_WORDS[match.group().lower()]
        if forbidden or number not in _FORBIDDEN:
            line = text[text.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0].strip()
            return OSError(number, os.strerror(number), f"{program}: {line}")
    return None


def diagnostic(error: BaseException) -> Diagnostic:
    """What to say of an error that has an exit code."""
    fact = "out of memory"
    if isinstance(error, OSError) and error.errno is not None and error.errno != errno.ENOMEM:
        words = os.strerror(error.errno).lower()
        fact = f"{words}: {error.filename}" if error.filename else words
    return Diagnostic(fact, Blame.TOOLCHAIN, help=_HELP[exit_code(error)])
