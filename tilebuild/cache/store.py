"""The two interfaces of every cache tier: blobs by digest, results by action key. Knows no tier.

What a tier promises:
- A blob that is read or fetched has the bytes its digest names; a damaged blob counts as absent.
- A result says what an action that succeeded made. Nothing else is ever stored.
- Adding what is there already is no error, from any number of processes at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from tilebuild.cache.digest import Digest


@dataclass(frozen=True)
class OutputFile:
    """A file that an action made; `path` is its local name inside the action."""

    path: str
    digest: Digest
    executable: bool = False


@dataclass(frozen=True)
class ActionResult:
    """What an action that succeeded left behind; `seconds` is what it took when it ran."""

    outputs: tuple[OutputFile, ...]
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "outputs": [[o.path, o.digest.hash, o.digest.size, o.executable] for o in self.outputs],
            "seconds": self.seconds,
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> ActionResult:
        outputs = tuple(
            OutputFile(path, Digest(hash_, size), bool(x)) for path, hash_, size, x in data["outputs"]
        )
        return ActionResult(outputs, float(data["seconds"]))

    def to_bytes(self) -> bytes:
        return json.dumps(self.to_json(), separators=(",", ":")).encode()


class BlobStore(Protocol):
    def missing(self, digests: Iterable[Digest]) -> set[Digest]:
        """Those of `digests` that this tier does not hold."""

    def read(self, digest: Digest) -> bytes | None:
        """The bytes, or None when absent or damaged."""

    def fetch(self, digest: Digest, destination: str, executable: bool = False) -> bool:
        """Makes the read-only file `destination`, which must not exist. False when absent or damaged."""

    def add(self, data: bytes) -> Digest:
        """Stores bytes."""

    def add_file(self, path: str, digest: Digest) -> None:
        """Stores the file at `path`, whose digest the caller has computed. The tier may keep a link to it."""


class ResultStore(Protocol):
    def get(self, key: Digest) -> ActionResult | None:
        """The result of the action with this key, or None."""

    def put(self, key: Digest, result: ActionResult) -> None:
        """Records a result. The blobs it names were added before."""


@dataclass(frozen=True)
class Cache:
    """Both sides of a stack of tiers."""

    blobs: BlobStore
    results: ResultStore
