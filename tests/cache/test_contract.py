"""What every tier promises, asserted once for all of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tilebuild.cache.complete import CompleteResults
from tilebuild.cache.digest import EMPTY, Digest, digest_of_bytes
from tilebuild.cache.disk import DiskStore
from tilebuild.cache.layered import LayeredBlobs, LayeredResults
from tilebuild.cache.memory import MemoryBlobs, MemoryResults
from tilebuild.cache.store import ActionResult, Cache, OutputFile

KEY = digest_of_bytes(b"a key")


def memory(_: Path) -> Cache:
    blobs = MemoryBlobs()
    return Cache(blobs, CompleteResults(MemoryResults(), blobs))


def disk(folder: Path) -> Cache:
    store = DiskStore(folder)
    return Cache(store, store)


def layered(folder: Path) -> Cache:
    near = disk(folder)
    far = memory(folder)
    blobs = LayeredBlobs(near.blobs, far.blobs)
    return Cache(blobs, CompleteResults(LayeredResults(near.results, far.results), blobs))


@pytest.fixture(params=[memory, disk, layered])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Cache:
    make: Callable[[Path], Cache] = request.param
    return make(tmp_path / "store")


def test_a_blob_comes_back(cache: Cache, tmp_path: Path) -> None:
    digest = cache.blobs.add(b"hello")
    assert digest == digest_of_bytes(b"hello")
    assert cache.blobs.read(digest) == b"hello"
    assert cache.blobs.fetch(digest, str(tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == b"hello"
    assert os.stat(tmp_path / "out").st_mode & 0o777 == 0o444


def test_an_executable_blob_can_run(cache: Cache, tmp_path: Path) -> None:
    digest = cache.blobs.add(b"#!/bin/sh\nexit 7\n")
    assert cache.blobs.fetch(digest, str(tmp_path / "run"), executable=True)
    assert os.waitstatus_to_exitcode(os.system(str(tmp_path / "run"))) == 7


def test_a_file_is_stored(cache: Cache, tmp_path: Path) -> None:
    (tmp_path / "made").write_bytes(b"made")
    (tmp_path / "made").chmod(0o444)
    digest = digest_of_bytes(b"made")
    cache.blobs.add_file(str(tmp_path / "made"), digest)
    cache.blobs.add_file(str(tmp_path / "made"), digest)
    assert cache.blobs.read(digest) == b"made"


def test_what_was_never_added_is_missing(cache: Cache, tmp_path: Path) -> None:
    absent = digest_of_bytes(b"absent")
    present = cache.blobs.add(b"present")
    assert cache.blobs.missing([absent, present]) == {absent}
    assert cache.blobs.read(absent) is None
    assert not cache.blobs.fetch(absent, str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_the_empty_blob(cache: Cache) -> None:
    assert cache.blobs.add(b"") == EMPTY
    assert cache.blobs.read(EMPTY) == b""


def test_a_result_comes_back(cache: Cache) -> None:
    result = ActionResult(
        (OutputFile("a/out", cache.blobs.add(b"1")), OutputFile("b", cache.blobs.add(b"2"), True)), 0.5
    )
    assert cache.results.get(KEY) is None
    cache.results.put(KEY, result)
    assert cache.results.get(KEY) == result


def test_a_result_without_its_blobs_is_a_miss(cache: Cache) -> None:
    lost = OutputFile("lost", Digest("0" * 64, 3))
    with contextlib.suppress(OSError):  # a tier may refuse to record it at all
        cache.results.put(KEY, ActionResult((OutputFile("kept", cache.blobs.add(b"1")), lost)))
    assert cache.results.get(KEY) is None
