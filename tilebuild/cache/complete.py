"""A result whose blobs are gone is a miss. A decorator over a tier's results; knows no particular tier."""

from __future__ import annotations

from tilebuild.cache.digest import Digest
from tilebuild.cache.store import ActionResult, BlobStore, ResultStore


class CompleteResults:
    def __init__(self, results: ResultStore, blobs: BlobStore) -> None:
        self._results = results
        self._blobs = blobs

    def get(self, key: Digest) -> ActionResult | None:
        result = self._results.get(key)
        if result is None or self._blobs.missing(output.digest for output in result.outputs):
            return None
        return result

    def put(self, key: Digest, result: ActionResult) -> None:
        self._results.put(key, result)
