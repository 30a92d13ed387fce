"""Small files that say whether they are whole: the first line is the SHA-256 of the rest. Knows no content.

What was torn, or changed by anything but us, counts as absent; a reader sees the old text or the new one.
"""

from __future__ import annotations

import contextlib
import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any


def seal(data: Any) -> bytes:
    """As JSON."""
    text = json.dumps(data, separators=(",", ":")).encode()
    return sha256(text).hexdigest().encode() + b"\n" + text


def unseal(sealed: bytes) -> Any:
    """None if it is not what `seal` made."""
    digest, _, text = sealed.partition(b"\n")
    return json.loads(text) if sha256(text).hexdigest().encode() == digest else None


def read_sealed(path: Path) -> Any:
    """None if there is nothing, or nothing whole."""
    try:
        return unseal(path.read_bytes())
    except OSError:
        return None


def write_sealed(path: Path, data: Any) -> None:
    replace_file(path, seal(data))


def replace_file(path: Path, data: bytes) -> None:
    """In one step; leaves nothing half written behind."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
