"""One command with declared inputs and outputs, as data. Knows nothing of rules, keys, caches or processes.

Inside an action every file has a *local* name, chosen by whoever declares the action. The key of an action is
made of local names and contents only, so two targets with the same work share one result.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, order=True)
class Artifact:
    """A file of the build.

    `path` is relative: to the workspace for sources, to the output folder for outputs
    (`kernels/softmax/softmax.rs`). `location` is the absolute path of a source that lies outside the
    workspace (a file of an installed distribution).
    """

    path: str
    source: bool = True
    location: str = ""

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class Tool:
    """Something that actions run or read besides their inputs.

    `digest` (see `tilebuild.cache.digest`) stands for all that can change what the tool answers; `path` is
    where it lies on this machine and never enters a key. A tool with a `module` is one of the Python tools in
    `tilebuild/tools`. `reads` and `writes` are further places of this machine that it uses, each with all
    that lies below it; they enter no key either.
    """

    name: str
    digest: str
    path: str = ""
    module: str = ""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Action:
    """A command line; `argv` holds local names only, never a path of this machine.

    - `argv[0]` is the name of a tool in `tools`; a Python tool is run as `python -m <module> argv[1:]`.
    - `inputs` and `outputs` pair a local name with an artifact; `inline` are small inputs given as bytes.
    - An input named in `optional` may be absent; any other absent input skips the action.
    - With a `guard`, the action runs only if that artifact exists and is not empty. An action that does not
      run is *skipped*: it did not fail, and its outputs are absent.
    - The process finds each tool's path in the environment variable `TILEBUILD_TOOL_<NAME>`.
    - `serial` names a resource that only one running action may hold (cargo's target folder).
    """

    mnemonic: str
    argv: tuple[str, ...]
    inputs: tuple[tuple[str, Artifact], ...]
    outputs: tuple[tuple[str, Artifact], ...]
    tools: tuple[Tool, ...]
    inline: tuple[tuple[str, bytes], ...] = ()
    optional: frozenset[str] = frozenset()
    guard: Artifact | None = None
    environment: tuple[tuple[str, str], ...] = ()
    platform: tuple[tuple[str, str], ...] = ()
    serial: str = ""
    timeout_s: float = 600.0
    label: str = ""
    detail: str = field(default="", compare=False)  # what a person reads: "softmax s0 sm_90"

    @property
    def name(self) -> str:
        """What people call it: `Assemble //kernels:softmax softmax s0/sm_90`."""
        return " ".join(part for part in (self.mnemonic, self.label, self.detail) if part)
