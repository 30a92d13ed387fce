"""The entry of a cubin: its symbol and the sizes of its parameters. Knows ELF and `.nv.info`, no instruction.

A launch hands the driver addresses of arguments and no sizes. So the sizes are read here and compared
before a launch: a wrong parameter list is an error message and not a kernel that reads past its arguments.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_SECTIONS_AT, _SECTION_ENTRY_AT = 0x28, 0x3A
_SECTION_HEADER = "<IIQQQQIIQQ"
_NO_BITS = 8
_INFO = ".nv.info."
_SIZED = 4
#: EIATTR_KPARAM_INFO, and the form of it that kernels with tensor maps have.
_PARAMETER, _PARAMETER_V2 = 0x17, 0x45


class CubinError(Exception):
    """A file that is no cubin with one entry."""


@dataclass(frozen=True)
class Entry:
    symbol: str
    sizes: tuple[int, ...]


def read_entry(cubin: bytes) -> Entry:
    """Raises `CubinError`."""
    try:
        sections = {name: data for name, data in _sections(cubin) if name.startswith(_INFO)}
    except (struct.error, ValueError, IndexError, UnicodeDecodeError) as error:
        raise CubinError(f"not a cubin: {error}") from error
    if len(sections) != 1:
        raise CubinError(f"a cubin of {len(sections)} entries; one is expected")
    ((name, data),) = sections.items()
    return Entry(name.removeprefix(_INFO), tuple(size for _, size in sorted(_parameters(data))))


def _sections(elf: bytes) -> Iterator[tuple[str, bytes]]:
    if elf[:4] != b"\x7fELF":
        raise ValueError("no ELF header")
    (start,) = struct.unpack_from("<Q", elf, _SECTIONS_AT)
    entry_bytes, count, names_index = struct.unpack_from("<HHH", elf, _SECTION_ENTRY_AT)
    headers = [struct.unpack_from(_SECTION_HEADER, elf, start + i * entry_bytes) for i in range(count)]
    names_at = headers[names_index][4]
    for name, kind, _, _, offset, size, *_ in headers:
        begin = names_at + name
        content = b"" if kind == _NO_BITS else elf[offset : offset + size]
        yield elf[begin : elf.index(b"\0", begin)].decode(), content


def _parameters(info: bytes) -> Iterator[tuple[int, int]]:
    """Position and size of each parameter."""
    at = 0
    while at < len(info):
        form, attribute = info[at], info[at + 1]
        if form != _SIZED:
            at += 4
            continue
        (length,) = struct.unpack_from("<H", info, at + 2)
        payload = info[at + 4 : at + 4 + length]
        at += 4 + length
        if attribute == _PARAMETER:
            _, position, _, flags = struct.unpack("<IHHI", payload)
            yield position, flags >> 18
        elif attribute == _PARAMETER_V2:
            _, position, _, size, _ = struct.unpack("<IHHHH", payload)
            yield position, size
