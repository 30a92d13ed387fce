"""The files and folders whose change can change any tool: what the no-op check looks at. Knows no single
tool.

Digests of tools are made from far more files than these; an installation that changes any of them also
changes one of these.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Collection
from pathlib import Path

from tilebuild.toolchain import rust

_PACKAGE = Path(__file__).resolve().parents[1]
_RUST = frozenset({"driver", "cargo", "rustfmt"})
_RULES = (_PACKAGE / "_rules", _PACKAGE.parent / "rules")


def files(tools: Collection[str]) -> tuple[str, ...]:
    """Our own sources, those of the driver, and for actions that use Rust what selects its toolchain.

    Paths are absolute.
    """
    found = [path for root in (_PACKAGE, *_RULES) for path in _sources(root)]
    if _RUST.intersection(tools):
        settings = Path(os.environ.get("RUSTUP_HOME") or os.path.expanduser("~/.rustup"), "settings.toml")
        found += [str(settings)] if settings.is_file() else []
        found.append(str(rust.toolchain().rustc))
    return tuple(sorted(found))


def folders() -> tuple[str, ...]:
    """Where distributions are installed: installing or removing one changes the folder."""
    return tuple(sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}))


def _sources(root: Path) -> list[str]:
    if not root.is_dir():
        return []
    return [
        os.path.join(folder, name)
        for folder, _, names in os.walk(root)
        if not folder.endswith("__pycache__") and "/target/" not in folder + "/"
        for name in names
    ]
