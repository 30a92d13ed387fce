"""Confines the calling thread, and all it starts from then on, to some places of the file system.

Raw system calls of the kernel's Landlock: no privilege is needed, and there is no way back. What exists can
still be told from what does not; what is not allowed can be neither read nor written. Knows no action.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38
#: Renames between folders are refused before this version, and compilers need them.
_OLDEST = 2

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << bit for bit in range(4))
_TRUNCATE = 1 << 14
_READ = _EXECUTE | _READ_FILE | _READ_DIR
#: What may be asked of a file that is no folder.
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
#: Every access that a version knows and that concerns paths.
_KNOWN = {1: (1 << 13) - 1, 2: (1 << 14) - 1}
_ALL = (1 << 15) - 1

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Allowed:
    """Places by absolute path, each with all that lies below it; what does not exist is left out.

    Of `listed` the names may be read but no content.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def works() -> bool:
    """Whether this kernel can confine us."""
    return _version() >= _OLDEST


def confine(allowed: Allowed) -> None:
    """Raises OSError where the kernel refuses."""
    handled = _KNOWN.get(_version(), _ALL)
    attributes = _Ruleset(handled)
    ruleset = _call(_CREATE_RULESET, ctypes.byref(attributes), ctypes.sizeof(attributes), 0)
    try:
        _allow(ruleset, allowed.read, _READ)
        _allow(ruleset, allowed.listed, _READ_DIR)
        _allow(ruleset, allowed.write, handled)
        if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise _last_error()
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, paths: Iterable[str], access: int) -> None:
    for path in paths:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # what is not there needs no permission
        try:
            folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
            rule = _PathBeneath(access if folder else access & _OF_FILES, descriptor)
            _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
        finally:
            os.close(descriptor)


def _version() -> int:
    return int(_libc.syscall(_CREATE_RULESET, None, 0, _ASK_VERSION))


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        raise _last_error()
    return result


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
