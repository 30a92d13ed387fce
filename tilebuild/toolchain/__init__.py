"""The tools that actions run: where they lie on this machine and what stands for them in keys. Knows no
action.

`tool(name)` gives a `Tool`; a missing one is a `DiagnosticError` that blames the toolchain and names the one
command that installs it. Names:

- a Python tool of `tilebuild/tools` by its module name (`python_ir`, `translate`, …)
- `tileiras`, `tileirdisasm`, `ptxas`: binaries of the installed wheels
- `driver`: the Rust program that compiles ports; its path exists once the action BuildDriver has run
- `cargo`: a file that says how to run cargo so that driver and checked ports share one set of compiled
  dependencies
- `rustfmt`, `sh`
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from tilebuild.action import Tool
from tilebuild.toolchain import python_tools, rust, wheels
from tilebuild.toolchain.checks import Check, doctor
from tilebuild.toolchain.crates import fetch

__all__ = ["Check", "doctor", "fetch", "tool"]

_FINDERS: dict[str, Callable[[], Tool]] = {
    "tileiras": lambda: wheels.binary("tileiras"),
    "tileirdisasm": lambda: wheels.binary("tileirdisasm"),
    "ptxas": lambda: wheels.binary("ptxas"),
    "driver": rust.driver,
    "cargo": rust.cargo,
    "rustfmt": rust.rustfmt,
    "sh": wheels.shell,
}


@cache
def tool(name: str) -> Tool:
    """Raises KeyError for a name that is no tool, DiagnosticError for a tool that is not installed."""
    if name in _FINDERS:
        return _FINDERS[name]()
    return python_tools.tool(name)
