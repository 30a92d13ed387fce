"""What a cubin says to a GPU, as comparable data. Knows ELF and the sections of a cubin, but no operation
and no file.

Two cubins hold the same machine code if their `machine_code` is equal: the instructions, relocations,
constants other than parameters, static data, shared memory and the attributes that a launch depends on; the
entry's own symbol is replaced by `@` wherever it occurs. What depends on the parameter layout is apart,
because the layout is a verdict of its own: `parameter_bytes` and `host_program`, which prepares a launch and
copies the parameters. Left out are debug information, notes, symbol tables and the `.nv.merc*` and
`.nv.capmerc*` copies for newer devices, which say the same again in another encoding."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MachineCode = Mapping[str, bytes]

_NOBITS = 8
_SYMBOL_TABLE = 2
_RELOCATIONS = 4
_FUNCTION = 2
_GLOBAL = 1
#: Attributes of `.nv.info` by number; the first three describe parameters.
_PARAMETER_CBANK = 0x0A
_PARAMETER_SIZE = 0x19
_PARAMETER_INFO = 0x45
_PARAMETER_ATTRIBUTES = frozenset({_PARAMETER_CBANK, 0x17, _PARAMETER_SIZE, _PARAMETER_INFO})
_FRAME_SIZE = 0x11
_REGISTER_COUNT = 0x2F
#: Attributes of `.nv.info` that begin with the index of a symbol.
_OF_SYMBOL = frozenset({_FRAME_SIZE, 0x12, 0x23, _REGISTER_COUNT})
_LONG_FORM = 4


@dataclass(frozen=True)
class Resources:
    """What one thread block costs. `stack_bytes` per thread: spilled registers and local arrays."""

    registers: int
    shared_bytes: int
    stack_bytes: int
    text_bytes: int
    parameter_bytes: int


class NotACubin(ValueError):
    """The bytes are no 64-bit little-endian ELF with one kernel entry."""


def machine_code(cubin: bytes) -> MachineCode:
    """Named parts, equal for equal machine code. Raises `NotACubin`."""
    elf = _Elf(cubin)
    entry = _entry(elf)
    parts: dict[str, bytes] = {}
    for section in elf.sections:
        name = _normal(section.name, entry)
        if name.startswith((".text.", ".nv.global", ".nv.local")):
            parts[name] = section.data
        elif name.startswith(".nv.constant"):
            if name != ".nv.constant0.@":
                parts[name] = section.data
        elif name.startswith(".nv.shared"):
            parts[name] = section.size.to_bytes(8, "little")
        elif name.startswith((".rela.text.", ".rela.nv.constant")):
            parts[name] = "\n".join(elf.relocations(section, entry)).encode()
        elif name in (".nv.info", ".nv.info.@"):
            parts[name] = "\n".join(_launch_attributes(elf, section, entry)).encode()
    return parts


def host_program(cubin: bytes) -> MachineCode:
    """The program that the driver runs on the host to prepare a launch; its parts are named `host …`."""
    elf = _Elf(cubin)
    entry = _entry(elf)
    programs = (_host_program(s.data, entry) for s in elf.sections if s.name == ".nv.host")
    return {f"host {name}": content for program in programs for name, content in program.items()}


def resources(cubin: bytes) -> Resources:
    """Raises `NotACubin`."""
    elf = _Elf(cubin)
    entry = _entry(elf)
    of_entry = {code: value for code, name, value in _symbol_attributes(elf) if name == entry}
    return Resources(
        registers=of_entry.get(_REGISTER_COUNT, 0),
        shared_bytes=sum(s.size for s in elf.sections if s.name == f".nv.shared.{entry}"),
        stack_bytes=of_entry.get(_FRAME_SIZE, 0),
        text_bytes=sum(s.size for s in elf.sections if s.name.startswith(".text.")),
        parameter_bytes=parameter_bytes(cubin),
    )


def parameter_bytes(cubin: bytes) -> int:
    """The size of the constant bank that holds the entry's parameters. Raises `NotACubin`."""
    elf = _Elf(cubin)
    name = f".nv.constant0.{_entry(elf)}"
    return sum(section.size for section in elf.sections if section.name == name)


def difference(left: MachineCode, right: MachineCode) -> str:
    """One line on the first part that differs, the instructions first; empty if none does."""
    for name in sorted(left.keys() | right.keys(), key=lambda n: (not n.startswith(".text."), n)):
        one, other = left.get(name), right.get(name)
        if one == other:
            continue
        if one is None or other is None:
            return f"{name} exists on the {'Rust' if one is None else 'Python'} side only"
        if len(one) != len(other):
            return f"{name}: {len(one):,} bytes in Python, {len(other):,} in Rust"
        at = next(i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
        return f"{name}: {len(one):,} bytes on both sides, the first difference at byte {at:,}"
    return ""


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    size: int
    data: bytes
    link: int


@dataclass(frozen=True)
class _Symbol:
    name: str
    info: int
    section: int
    value: int


class _Elf:
    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            raise NotACubin("no 64-bit little-endian ELF")
        try:
            self.sections = tuple(_sections(data))
            self.symbols = tuple(self._symbols())
        except (struct.error, IndexError, ValueError) as error:
            raise NotACubin(f"damaged ELF: {error}") from error

    def _symbols(self) -> Iterator[_Symbol]:
        for section in self.sections:
            if section.kind != _SYMBOL_TABLE or section.name != ".symtab":
                continue
            names = self.sections[section.link].data
            for name, info, _, index, value, _ in struct.iter_unpack("<IBBHQQ", section.data):
                yield _Symbol(_text_at(names, name), info, index, value)

    def symbol_name(self, index: int) -> str:
        """The name of a symbol; that of its section for a section symbol."""
        symbol = self.symbols[index]
        return symbol.name or (
            self.sections[symbol.section].name if symbol.section < len(self.sections) else ""
        )

    def relocations(self, section: _Section, entry: str) -> Iterator[str]:
        """`offset type symbol addend`, one line each."""
        if section.kind == _RELOCATIONS:
            for offset, info, addend in struct.iter_unpack("<QQq", section.data):
                symbol = _normal(self.symbol_name(info >> 32), entry)
                yield f"{offset:#x} {info & 0xFFFFFFFF} {symbol} {addend:#x}"


def _sections(data: bytes) -> Iterator[_Section]:
    (table,) = struct.unpack_from("<Q", data, 0x28)
    entry_size, count, names_index = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * entry_size) for i in range(count)]
    names_offset = headers[names_index][4]
    for name, kind, _, _, offset, size, link, *_ in headers:
        content = b"" if kind == _NOBITS else data[offset : offset + size]
        yield _Section(_text_at(data, names_offset + name), kind, size, content, link)


def _text_at(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode()


def _entry(elf: _Elf) -> str:
    """The name of the one global function."""
    entries = [
        s.name for s in elf.symbols if s.info & 0xF == _FUNCTION and s.info >> 4 == _GLOBAL and s.section
    ]
    if len(entries) != 1:
        raise NotACubin(f"{len(entries)} kernel entries")
    return entries[0]


def _normal(name: str, entry: str) -> str:
    """A section's or symbol's name without the entry's: each `k` in `k`, `.text.k` and `$k$helper` is `@`."""
    if name == entry:
        return "@"
    if name.endswith(f".{entry}"):
        return name.removesuffix(entry) + "@"
    return f"$@{name.removeprefix(f'${entry}')}" if name.startswith(f"${entry}$") else name


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and payload of each attribute of a `.nv.info` section."""
    at = 0
    while at + 4 <= len(data):
        form, code = data[at], data[at + 1]
        (size,) = struct.unpack_from("<H", data, at + 2)
        if form == _LONG_FORM:
            yield code, data[at + 4 : at + 4 + size]
            at += 4 + size
        else:
            yield code, data[at + 2 : at + 4]
            at += 4


def _launch_attributes(elf: _Elf, section: _Section, entry: str) -> Iterator[str]:
    for code, payload in _attributes(section.data):
        if code in _PARAMETER_ATTRIBUTES:
            continue
        if code in _OF_SYMBOL:
            index, *rest = struct.unpack(f"<{len(payload) // 4}I", payload)
            yield f"{code:#x} {_normal(elf.symbol_name(index), entry)} {rest}"
        else:
            yield f"{code:#x} {payload.hex()}"


def _symbol_attributes(elf: _Elf) -> Iterator[tuple[int, str, int]]:
    """Number, symbol and value of each attribute of a symbol."""
    for section in elf.sections:
        if section.name == ".nv.info":
            for code, payload in _attributes(section.data):
                if code in (_FRAME_SIZE, _REGISTER_COUNT):
                    index, value = struct.unpack("<II", payload)
                    yield code, elf.symbol_name(index), value


def _host_program(data: bytes, entry: str) -> dict[str, bytes]:
    """The sections that are loaded or executed; symbol and string tables hold names only.

    The program knows its kernel by name, so the entry's symbol stands in its data too.
    """
    if not data:
        return {}
    name = entry.encode() + b"\0"
    tables = {_SYMBOL_TABLE, 3, 11}
    return {
        _normal(s.name, entry): s.data.replace(name, b"@\0")
        for s in _Elf(data).sections
        if s.name and s.kind not in tables and not s.name.startswith((".rela", ".hash", ".gnu", ".dynstr"))
    }
