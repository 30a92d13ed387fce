"""The name of bytes: SHA-256 and size, as in REAPI v2. Knows nothing of what the bytes mean."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import NamedTuple


class Digest(NamedTuple):
    """`hash` is 64 lower-case hex digits, `size` is in bytes."""

    hash: str
    size: int

    def __str__(self) -> str:
        return f"{self.hash}/{self.size}"

    @staticmethod
    def parse(text: str) -> Digest:
        hash_, _, size = text.partition("/")
        return Digest(hash_, int(size))


EMPTY = Digest(sha256(b"").hexdigest(), 0)


def digest_of_bytes(data: bytes) -> Digest:
    return Digest(sha256(data).hexdigest(), len(data))


def digest_of_file(path: str | os.PathLike[str]) -> Digest:
    """Reads the file in pieces. Raises OSError as `open` does."""
    state = sha256()
    size = 0
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while piece := os.read(fd, 1 << 18):
            state.update(piece)
            size += len(piece)
    finally:
        os.close(fd)
    return Digest(state.hexdigest(), size)
