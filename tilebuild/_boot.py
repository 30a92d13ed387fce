"""Where the command begins: an invocation that has nothing to do is answered from a file. Knows no command.

A *memo* holds one finished invocation: its exact arguments, folder and environment, a signature of every
file and folder that it depended on and of every file that it published, and what it printed. When all
signatures are as they were, the text is printed again and that is all; nothing but the memo is read and
nothing heavy is imported. Otherwise the command line takes over, and writes the memo anew when it has ended
well.

A memo is never the truth: losing one costs one full check.
"""

from __future__ import annotations

import os
import sys
from _struct import pack, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: Where memos lie in a workspace. An output folder of another name has none.
OUTPUT = "tilebuild-out"
MEMO_FOLDER = f"{OUTPUT}/.tilebuild/memo"

_MAGIC = b"tilebuild memo 2"
_KEPT = 64
#: Variables that can change what a command does or prints; besides them those that begin with TILEBUILD_.
_VARIABLES = (
    *("CARGO_HOME", "COLUMNS", "CUDA_TOOLKIT_PATH", "HOME", "LANG", "LC_ALL", "NO_COLOR", "PATH"),
    *("RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "TERM", "VIRTUAL_ENV", "XDG_CACHE_HOME"),
)
_INODE_BITS = (1 << 63) - 1


def main() -> None:
    """The `tilebuild` command."""
    memo = recall(sys.argv, os.environ)
    if memo is not None:
        _say(memo)
        os._exit(0)
    from tilebuild.cli.main import run

    sys.exit(run(sys.argv))


def recall(argv: Sequence[str], environ: Mapping[str, str]) -> bytes | None:
    """What the same invocation printed, if nothing has changed since."""
    start = os.getcwd()
    root = start
    while True:
        memo = _read(f"{root}/{MEMO_FOLDER}/", _key(argv, os.path.relpath(start, root), environ))
        if memo is not None:
            break
        if root == "/":
            return None
        root = root.rpartition("/")[0] or "/"
    files, folders, outputs, recorded, text = memo
    try:
        os.chdir(root)
        if signatures(files, folders, outputs) == recorded:
            return text
    except (OSError, ValueError):
        pass  # something is gone, or its name is damaged
    os.chdir(start)
    return None


def remember(
    root: str,
    argv: Sequence[str],
    start: str,
    environ: Mapping[str, str],
    files: Sequence[str],
    folders: Sequence[str],
    outputs: Sequence[str],
    recorded: bytes,
    text: bytes,
) -> None:
    """Writes the memo of an invocation; paths are relative to `root` or absolute, `recorded` as by
    `signatures`.
    """
    key = _key(argv, os.path.relpath(start, root), environ)
    names = ["\n".join(paths).encode() for paths in (files, folders, outputs)]
    sections = [key, *names, recorded, pack("Q", _sum(text)) + text]
    folder = os.path.join(root, MEMO_FOLDER)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, _name(key))
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "wb") as file:
        file.writelines((_MAGIC, pack("6q", *map(len, sections)), *sections, _MAGIC))
    os.replace(temporary, path)
    _drop_oldest(folder)


def signatures(files: Iterable[str], folders: Iterable[str], outputs: Iterable[str]) -> bytes:
    """What `stat` says of each. Raises OSError when something is gone.

    Outputs go without their change time: another link to the same content, made or removed, changes it.
    """
    values: list[int] = []
    add = values.extend
    stat = os.stat
    for s in map(stat, files):
        add((s.st_mtime_ns, s.st_ctime_ns, s.st_size, s.st_ino & _INODE_BITS))
    for s in map(stat, folders):
        add((s.st_mtime_ns, s.st_ctime_ns, s.st_ino & _INODE_BITS))
    for s in map(stat, outputs):
        add((s.st_mtime_ns, s.st_size, s.st_ino & _INODE_BITS))
    return pack(f"{len(values)}q", *values)


def _key(argv: Sequence[str], folder: str, environ: Mapping[str, str]) -> bytes:
    names = [name for name in environ if name in _VARIABLES or name.startswith("TILEBUILD_")]
    variables = [f"{name}={environ[name]}" for name in sorted(names)]
    terminal = str((os.isatty(1), os.isatty(2)))
    parts = [sys.prefix, sys.version, terminal, folder, *variables, "", *argv[1:]]
    return "\0".join(parts).encode(errors="surrogateescape")


def _name(key: bytes) -> str:
    # A remainder by a prime spreads well enough, and needs no module; the whole key is compared afterwards.
    return f"{int.from_bytes(key, 'little') % 2305843009213693951:016x}"


def _read(folder: str, key: bytes) -> tuple[list[str], list[str], list[str], bytes, bytes] | None:
    try:
        descriptor = os.open(folder + _name(key), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = _read_all(descriptor)
    finally:
        os.close(descriptor)
    end = len(_MAGIC) + 6 * 8
    if len(data) < end or not data.startswith(_MAGIC) or not data.endswith(_MAGIC):
        return None
    lengths = unpack("6q", data[len(_MAGIC) : end])
    if end + sum(lengths) + len(_MAGIC) != len(data):
        return None
    sections = []
    for length in lengths:
        sections.append(data[end : end + length])
        end += length
    # Damage to the rest shows in what `stat` says; only what is printed needs a sum of its own.
    if sections[0] != key:
        return None
    try:
        files, folders, outputs = (text.decode().split("\n") if text else [] for text in sections[1:4])
    except ValueError:
        return None
    text = sections[5][8:]
    if sections[5][:8] != pack("Q", _sum(text)):
        return None
    return files, folders, outputs, sections[4], text


def _sum(text: bytes) -> int:
    """Changes with any one byte. Needs no module, and looks at eight bytes at a time."""
    return sum(memoryview(text + bytes(-len(text) % 8)).cast("Q")) % (1 << 64)


def _read_all(descriptor: int) -> bytes:
    pieces = []
    while piece := os.read(descriptor, 1 << 24):
        pieces.append(piece)
    return b"".join(pieces)


def _say(text: bytes) -> None:
    while text:
        text = text[os.write(1, text) :]


def _drop_oldest(folder: str) -> None:
    memos = sorted((os.path.join(folder, name) for name in os.listdir(folder)), key=os.path.getmtime)
    for path in memos[:-_KEPT]:
        os.unlink(path)
