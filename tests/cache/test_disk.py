"""Damage, crashes and bounds of the store on disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tilebuild.cache import eviction
from tilebuild.cache.digest import Digest, digest_of_bytes
from tilebuild.cache.disk import DiskStore
from tilebuild.cache.sealed import seal, unseal
from tilebuild.cache.store import ActionResult, OutputFile

KEY = digest_of_bytes(b"key")


def store_with(folder: Path, data: bytes = b"content", key: Digest = KEY) -> tuple[DiskStore, Digest]:
    store = DiskStore(folder)
    digest = store.add(data)
    store.put(key, ActionResult((OutputFile("out", digest),)))
    return store, digest


def overwrite(path: Path, data: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [b"", b"cont", b"CONTENT", b"content and more"])
def test_a_damaged_blob_is_a_miss_and_is_repaired(tmp_path: Path, damage: bytes) -> None:
    store, digest = store_with(tmp_path)
    overwrite(store.blob_path(digest), damage)
    fresh = DiskStore(tmp_path)
    assert fresh.get(KEY) is None
    assert fresh.read(digest) is None
    assert not fresh.fetch(digest, str(tmp_path / "out"))
    fresh.add(b"content")
    fresh.put(KEY, ActionResult((OutputFile("out", digest),)))
    assert fresh.read(digest) == b"content"
    assert fresh.get(KEY) is not None


@pytest.mark.parametrize(
    "entry", [b"", b"{", b"[]", b'{"schema":1}', b'{"schema":99,"outputs":[],"seconds":0,"stamps":[]}']
)
def test_a_damaged_result_is_a_miss(tmp_path: Path, entry: bytes) -> None:
    store, _ = store_with(tmp_path)
    store.result_path(KEY).write_bytes(entry)
    assert DiskStore(tmp_path).get(KEY) is None


def test_an_edit_through_a_link_does_not_poison_the_store(tmp_path: Path) -> None:
    store, digest = store_with(tmp_path)
    assert store.fetch(digest, str(tmp_path / "out"))
    overwrite(tmp_path / "out", b"EDITED!")
    assert store.get(KEY) is None
    assert store.missing([digest]) == {digest}


def test_after_another_boot_unsynced_blobs_are_hashed(tmp_path: Path) -> None:
    store, digest = store_with(tmp_path)
    entry = unseal(store.result_path(KEY).read_bytes())
    entry["boot"] = "an earlier boot"
    store.result_path(KEY).write_bytes(seal(entry))
    blob = store.blob_path(digest)
    stamp = blob.stat().st_mtime_ns
    overwrite(blob, b"\0" * 7)  # what a power cut leaves: size and time as recorded, other bytes
    os.utime(blob, ns=(stamp, stamp))
    assert DiskStore(tmp_path).get(KEY) is None


def test_a_synced_build_is_trusted_after_another_boot(tmp_path: Path) -> None:
    store, _ = store_with(tmp_path)
    store.sync()
    entry = unseal(store.result_path(KEY).read_bytes())
    entry["boot"] = "an earlier boot"
    store.result_path(KEY).write_bytes(seal(entry))
    assert DiskStore(tmp_path).get(KEY) is not None


def test_outputs_are_links_and_executables_are_copies(tmp_path: Path) -> None:
    store, digest = store_with(tmp_path)
    store.fetch(digest, str(tmp_path / "link"))
    store.fetch(digest, str(tmp_path / "copy"), executable=True)
    assert os.path.samefile(tmp_path / "link", store.blob_path(digest))
    assert not os.path.samefile(tmp_path / "copy", store.blob_path(digest))


def test_the_least_recently_used_results_are_dropped(tmp_path: Path) -> None:
    keys = [digest_of_bytes(bytes([i])) for i in range(4)]
    for age, key in enumerate(keys):
        store, _ = store_with(tmp_path, bytes([age]) * 100, key)
        os.utime(store.result_path(key), (1_000_000 - age, 0))
        store.close()
    dropped = eviction.collect(tmp_path, limit_bytes=250)
    assert (dropped.results, dropped.blobs, dropped.bytes) == (2, 2, 200)
    store = DiskStore(tmp_path)
    assert [store.get(key) is not None for key in keys] == [True, True, False, False]
    assert eviction.usage(tmp_path) == eviction.Usage(results=2, blobs=2, bytes=200)


def test_nothing_is_dropped_while_a_build_uses_the_store(tmp_path: Path) -> None:
    store, _ = store_with(tmp_path)
    with pytest.raises(eviction.StoreInUse):
        eviction.collect(tmp_path, limit_bytes=0)
    store.close()
    assert eviction.collect(tmp_path, limit_bytes=0).results == 1


def test_verify_finds_damage(tmp_path: Path) -> None:
    store, digest = store_with(tmp_path)
    assert eviction.damaged(tmp_path) == []
    overwrite(store.blob_path(digest), b"CONTENT")
    assert eviction.damaged(tmp_path) == [store.blob_path(digest)]
