"""Two tiers as one: a near one that is asked first, and a far one whose answers are kept in the near one.

Knows no particular tier; more than two are nested pairs.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilebuild.cache.digest import Digest
from tilebuild.cache.store import ActionResult, BlobStore, ResultStore


class LayeredBlobs:
    def __init__(self, near: BlobStore, far: BlobStore) -> None:
        self._near = near
        self._far = far

    def missing(self, digests: Iterable[Digest]) -> set[Digest]:
        absent = self._near.missing(digests)
        return self._far.missing(absent) if absent else absent

    def read(self, digest: Digest) -> bytes | None:
        data = self._near.read(digest)
        return data if data is not None else self._bring(digest)

    def fetch(self, digest: Digest, destination: str, executable: bool = False) -> bool:
        if self._near.fetch(digest, destination, executable):
            return True
        return self._bring(digest) is not None and self._near.fetch(digest, destination, executable)

    def add(self, data: bytes) -> Digest:
        self._far.add(data)
        return self._near.add(data)

    def add_file(self, path: str, digest: Digest) -> None:
        self._near.add_file(path, digest)
        self._far.add_file(path, digest)

    def _bring(self, digest: Digest) -> bytes | None:
        data = self._far.read(digest)
        if data is not None:
            self._near.add(data)
        return data


class LayeredResults:
    def __init__(self, near: ResultStore, far: ResultStore) -> None:
        self._near = near
        self._far = far

    def get(self, key: Digest) -> ActionResult | None:
        # A far result is not written to the near tier here: its blobs may not be near yet, and a near
        # result without blobs would only be a miss.
        return self._near.get(key) or self._far.get(key)

    def put(self, key: Digest, result: ActionResult) -> None:
        self._near.put(key, result)
        self._far.put(key, result)
