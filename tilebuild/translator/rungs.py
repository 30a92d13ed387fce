"""The spellings that are tried, best first. Knows their names and what each asks of the printer, nothing
else.

Importing this module is cheap, because rules read `RUNGS` while BUILD files are analysed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rung:
    """One spelling of a kernel.

    `tensors`: arrays are `&Tensor` parameters; else pointers and explicit facts. `mutable`: outputs are
    `&mut Tensor`, stored safely. `checked`: accesses are checked, and no check may remain inside the kernel.
    `plain_loops`: loops run between numbers of which the compiler knows nothing, as Python's do, because it
    assumes bounds of the loop's variable otherwise. `literal`: block ids and constants are written one to
    one, too, instead of by the functions that a Rust author would choose.
    """

    name: str
    tensors: bool
    mutable: bool
    checked: bool
    plain_loops: bool = False
    literal: bool = False


_RUNGS = (
    Rung("safe", tensors=True, mutable=True, checked=True),
    Rung("typed", tensors=True, mutable=False, checked=True),
    Rung("typed-unchecked", tensors=True, mutable=False, checked=False),
    Rung("typed-plain", tensors=True, mutable=False, checked=False, plain_loops=True),
    Rung("raw", tensors=False, mutable=False, checked=False, plain_loops=True, literal=True),
)

#: Names of the rungs, best first.
RUNGS: tuple[str, ...] = tuple(r.name for r in _RUNGS)


def rung(name: str) -> Rung:
    """The rung of that name. Raises `KeyError` with the names there are."""
    for candidate in _RUNGS:
        if candidate.name == name:
            return candidate
    raise KeyError(f"no rung {name!r}; there are {', '.join(RUNGS)}")
