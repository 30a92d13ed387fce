"""Runs cargo as the file behind the tool `cargo` says: its environment, its target folder. Knows neither
driver nor port.

The file is written by `tilebuild.toolchain.rust`; its paths are those of one machine and enter no key.
"""

from __future__ import annotations

import fcntl
import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError


@dataclass(frozen=True)
class Cargo:
    """How cargo is run on this machine. `network` is added to the environment for a download only."""

    cargo: str
    clippy_driver: str
    rustfmt: str
    sources: Path  # the driver's crate
    target: Path
    driver: Path
    digest: str  # of the driver
    environment: Mapping[str, str]
    network: Mapping[str, str]

    @staticmethod
    def read(file: Path) -> Cargo:
        """Raises DiagnosticError if the file is gone."""
        try:
            data = json.loads(file.read_text())
        except OSError as error:
            fact = f"{file} is gone: {error.strerror}"
            raise DiagnosticError(Diagnostic(fact, Blame.TOOLCHAIN, help="run the build again")) from error
        for name in ("sources", "target", "driver"):
            data[name] = Path(data[name])
        return Cargo(**data)

    def start(
        self, arguments: Sequence[str], folder: Path, extra: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """cargo with both outputs as pipes of text. Its linkers write where the action may: in `TMPDIR`."""
        return subprocess.Popen(
            [self.cargo, *arguments],
            cwd=folder,
            env={"TMPDIR": tempfile.gettempdir(), **self.environment, **(extra or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the target folder against other builds of this user: the checked crate lies in it."""
        self.target.mkdir(parents=True, exist_ok=True)
        with open(self.target / ".tilebuild.lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
