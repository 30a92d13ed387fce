"""Files that loading reads, each once, with the digest of what was read. Knows nothing of what they hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tilebuild.cache.digest import Digest, digest_of_bytes
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError, Span


@dataclass
class Sources:
    """`read` holds the digest of every file by its path, absolute for a file outside the workspace."""

    root: Path
    read: dict[str, Digest] = field(default_factory=dict)
    _contents: dict[str, bytes] = field(default_factory=dict)

    def content(self, path: str) -> bytes:
        """The bytes of a file. Raises OSError."""
        if path not in self._contents:
            data = (self.root / path).read_bytes()
            self._contents[path] = data
            self.read[path] = digest_of_bytes(data)
        return self._contents[path]

    def text(self, path: str) -> str:
        """The text of a file. Raises OSError, and DiagnosticError if it is not UTF-8."""
        data = self.content(path)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise DiagnosticError(
                Diagnostic("the file is not UTF-8", Blame.BUILD_FILE, Span(path, line))
            ) from None
