"""Which rules are there without a load line, and where their files lie. Knows no rule's content."""

from __future__ import annotations

from pathlib import Path

#: The standard rules; each is defined in the file of its name. This is the one place that lists them.
STANDARD_RULES = (
    "alias",
    "config_setting",
    "filegroup",
    "genrule",
    "python_package",
    "test_suite",
    "tile_library",
    "tile_operator",
)

_PACKAGE = Path(__file__).resolve().parent.parent


def folder() -> Path:
    """The folder of the standard rules: inside the installed package, or beside it in a checkout."""
    installed = _PACKAGE / "_rules"
    return installed if installed.is_dir() else _PACKAGE.parent / "rules"
