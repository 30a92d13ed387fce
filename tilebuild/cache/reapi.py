"""The canonical byte form of the REAPI v2 messages that make a key, without protobuf.

Knows nothing of actions, files or stores. Fields go out in the order of their numbers, default values are
left out, an empty sub-message is left out too: two bytes of an empty `platform {}` would be another key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tilebuild.cache.digest import Digest, digest_of_bytes

_VARINT, _BYTES = 0, 2


@dataclass(frozen=True)
class FileEntry:
    """A file of an input tree: `path` uses `/`, has no `.` or `..` segment and is relative."""

    path: str
    digest: Digest
    executable: bool = False


def encode_digest(digest: Digest) -> bytes:
    return _text(1, digest.hash) + _integer(2, digest.size)


def encode_platform(properties: Iterable[tuple[str, str]]) -> bytes:
    return b"".join(_message(1, _text(1, name) + _text(2, value)) for name, value in sorted(properties))


def encode_command(
    arguments: Sequence[str],
    environment: Iterable[tuple[str, str]],
    output_paths: Iterable[str],
    platform: Iterable[tuple[str, str]] = (),
) -> bytes:
    encoded = [_message(1, argument.encode()) for argument in arguments]
    encoded += [_message(2, _text(1, name) + _text(2, value)) for name, value in sorted(environment)]
    encoded.append(_optional(5, encode_platform(platform)))
    encoded += [_message(7, path.encode()) for path in sorted(set(output_paths))]
    return b"".join(encoded)


def encode_action(
    command: Digest,
    input_root: Digest,
    timeout_s: float = 0.0,
    salt: bytes = b"",
    platform: Iterable[tuple[str, str]] = (),
) -> bytes:
    seconds, nanos = divmod(round(timeout_s * 1_000_000_000), 1_000_000_000)
    duration = _integer(1, seconds) + _integer(2, nanos)
    return (
        _message(1, encode_digest(command))
        + _message(2, encode_digest(input_root))
        + _optional(6, duration)
        + _optional(9, salt)
        + _optional(10, encode_platform(platform))
    )


def encode_tree(files: Iterable[FileEntry]) -> tuple[Digest, dict[Digest, bytes]]:
    """The `Directory` messages of a tree: the digest of its root, and every message by its digest."""
    messages: dict[Digest, bytes] = {}
    root = _encode_directory({tuple(file.path.split("/")): file for file in files}, messages)
    return root, messages


def _encode_directory(files: Mapping[tuple[str, ...], FileEntry], messages: dict[Digest, bytes]) -> Digest:
    here: dict[str, FileEntry] = {}
    below: dict[str, dict[tuple[str, ...], FileEntry]] = {}
    for path, file in files.items():
        if path[0] in ("", ".", "..") or "\0" in path[0]:
            raise ValueError(f"not a relative path: {file.path!r}")
        if len(path) == 1:
            here[path[0]] = file
        else:
            below.setdefault(path[0], {})[path[1:]] = file
    if clash := here.keys() & below.keys():
        raise ValueError(f"{sorted(clash)[0]!r} is a file and a directory")
    encoded = b"".join(_message(1, _file_node(name, here[name])) for name in sorted(here))
    for name in sorted(below):
        child = _encode_directory(below[name], messages)
        encoded += _message(2, _text(1, name) + _message(2, encode_digest(child)))
    digest = digest_of_bytes(encoded)
    messages[digest] = encoded
    return digest


def _file_node(name: str, file: FileEntry) -> bytes:
    return _text(1, name) + _message(2, encode_digest(file.digest)) + _integer(4, int(file.executable))


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(value) if value else b""


def _message(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _optional(number: int, data: bytes) -> bytes:
    return _message(number, data) if data else b""


def _text(number: int, value: str) -> bytes:
    return _optional(number, value.encode())
