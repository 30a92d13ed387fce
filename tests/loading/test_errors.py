"""What people see when a BUILD file is wrong: one case file for each kind of mistake.

A case holds files, each after a line `--- path`, and ends with `--- errors` and the exact text. With
`UPDATE_GOLDEN=1` in the environment, what is printed now goes into the case; read the difference before it is
committed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.loading.space import Space

CASES = sorted((Path(__file__).parent / "errors").glob("*.case"))


def sections(text: str) -> dict[str, str]:
    parts = re.split(r"^--- (.+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_errors(space: Space, case: Path) -> None:
    files = sections(case.read_text())
    expected = files.pop("errors")
    space.write_all(files)
    errors = space.errors("//...") + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        case.write_text("".join(f"--- {path}\n{text}" for path, text in {**files, "errors": errors}.items()))
    else:
        assert errors == expected


def test_there_are_cases() -> None:
    assert CASES


def test_a_distribution_of_another_version(space: Space) -> None:
    space.write("BUILD", 'python_package(name = "b", distribution = "click", version = "0.1")')
    errors = space.errors("//...")
    assert "the Python distribution 'click' is installed in version" in errors
    assert "help: pip install click==0.1" in errors
