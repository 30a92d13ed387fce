"""A tier in memory: for builds that leave nothing behind, and for tests. Knows nothing of other tiers."""

from __future__ import annotations

import os
from collections.abc import Iterable

from tilebuild.cache.digest import EMPTY, Digest, digest_of_bytes
from tilebuild.cache.store import ActionResult


class MemoryBlobs:
    def __init__(self) -> None:
        self._blobs: dict[Digest, bytes] = {EMPTY: b""}

    def missing(self, digests: Iterable[Digest]) -> set[Digest]:
        return {digest for digest in digests if digest not in self._blobs}

    def read(self, digest: Digest) -> bytes | None:
        return self._blobs.get(digest)

    def fetch(self, digest: Digest, destination: str, executable: bool = False) -> bool:
        data = self._blobs.get(digest)
        if data is None:
            return False
        fd = os.open(destination, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(fd, "wb") as file:
            file.write(data)
            os.fchmod(fd, 0o555 if executable else 0o444)
        return True

    def add(self, data: bytes) -> Digest:
        digest = digest_of_bytes(data)
        self._blobs[digest] = data
        return digest

    def add_file(self, path: str, digest: Digest) -> None:
        with open(path, "rb") as file:
            data = file.read()
        if digest_of_bytes(data) == digest:
            self._blobs[digest] = data

    def discard(self, digest: Digest) -> None:
        self._blobs.pop(digest, None)


class MemoryResults:
    def __init__(self) -> None:
        self._results: dict[Digest, ActionResult] = {}

    def get(self, key: Digest) -> ActionResult | None:
        return self._results.get(key)

    def put(self, key: Digest, result: ActionResult) -> None:
        self._results[key] = result
