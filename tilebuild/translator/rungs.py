"""The spellings that are tried, best first. Knows their names and what each asks of the printer, nothing
else.

Importing this module is cheap, because rules read `RUNGS` while BUILD files are analysed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rung:
    """One spelling of a kernel.

    `tensors`: arrays are `&Tensor` parameters where views are all that is made of them; else pointers and
    explicit facts. `mutable`: outputs are `&mut Tensor`, stored safely. `checked`: accesses are checked and
    no check may remain inside the kernel. `readable`: loops start at plain numbers, and block ids come from
    the public functions, although the compiler then learns more about them than it does from Python.
    """

    name: str
    tensors: bool
    mutable: bool
    checked: bool
    readable: bool


_RUNGS = (
    Rung("safe", tensors=True, mutable=True, checked=True, readable=True),
    Rung("typed", tensors=True, mutable=False, checked=True, readable=True),
    Rung("typed-unchecked", tensors=True, mutable=False, checked=False, readable=True),
    Rung("typed-plain", tensors=True, mutable=False, checked=False, readable=False),
    Rung("raw", tensors=False, mutable=False, checked=False, readable=False),
)

#: Names of the rungs, best first.
RUNGS: tuple[str, ...] = tuple(r.name for r in _RUNGS)


def rung(name: str) -> Rung:
    """The rung of that name. Raises `KeyError` with the names there are."""
    for candidate in _RUNGS:
        if candidate.name == name:
            return candidate
    raise KeyError(f"no rung {name!r}; there are {', '.join(RUNGS)}")
