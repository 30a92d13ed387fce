"""What the standard rules hand each other. Knows no rule and no action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilebuild.action import Artifact
from tilebuild.case import Case
from tilebuild.device_class import DeviceClass
from tilebuild.signature import Signature


@dataclass(frozen=True)
class Library:
    """Python modules that kernels may import: import path (`tilegym/ops/x.py`) to file, transitive."""

    files: Mapping[str, Artifact]


@dataclass(frozen=True)
class Compiled:
    """One side of one instance: byte code, its text and the cubin."""

    byte_code: Artifact
    text: Artifact
    cubin: Artifact


@dataclass(frozen=True)
class PortedInstance:
    """One signature of a kernel on one architecture. `interface` describes the Python kernel's parameters."""

    signature: Signature
    architecture: str
    interface: Artifact
    python: Compiled
    rust: Compiled


@dataclass(frozen=True)
class PortedKernel:
    """The port of one kernel: Rust source, what is said of it, and what it was compiled to."""

    kernel: str
    source: Artifact
    description: Artifact
    differences: Artifact
    choice: Artifact
    instances: tuple[PortedInstance, ...]

    @property
    def published(self) -> tuple[Artifact, ...]:
        """The files that people look at."""
        cubins = (i.rust.cubin for i in self.instances)
        return (self.source, self.description, self.differences, *cubins)

    def instance(self, signature: Signature, architecture: str) -> PortedInstance:
        """Raises StopIteration if the kernel is not compiled for them."""
        return next(i for i in self.instances if (i.signature, i.architecture) == (signature, architecture))


@dataclass(frozen=True)
class Port:
    """What `tile_operator` makes of an operator."""

    target: str
    cases: tuple[Case, ...]
    kernels: tuple[PortedKernel, ...]

    @property
    def cubins(self) -> tuple[Artifact, ...]:
        """The cubins of the Rust side, for every kernel, signature and architecture."""
        return tuple(i.rust.cubin for kernel in self.kernels for i in kernel.instances)


@dataclass(frozen=True)
class GpuPlan:
    """What an operator's cases are to a device class: what must run there, and what was recorded of it.

    `ledger` may not exist. `sources` are the user's files that run beside the kernels.
    """

    device: DeviceClass
    plan: Artifact
    ledger: Artifact
    cubins: tuple[Artifact, ...]
    sources: tuple[Artifact, ...]
