"""The translator knows operations, never kernels: no name of the corpus occurs in its code."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import tilebuild.translator
from tests.tilegym import wheel

FOLDER = Path(tilebuild.translator.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))


def _names() -> set[str]:
    """All kernels, the Python files that they lie in and the functions of Rust that they become."""
    kernels = {kernel.name for kernel in wheel.kernels()}
    return {*kernels, *(name.strip("_") for name in kernels), *wheel.operators()}


def _code(path: Path) -> Iterator[tuple[int, str]]:
    """Everything but comments, so strings and documentation too, by line."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type != tokenize.COMMENT:
            yield token.start[0], token.string


def test_the_corpus_has_names() -> None:
    assert len({kernel.name for kernel in wheel.kernels()}) >= 45
    assert len(wheel.kernels()) == 47
    assert sum(len(kernel.signatures) for kernel in wheel.kernels()) == 125


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(FOLDER).as_posix())
def test_no_code_mentions_a_kernel(path: Path) -> None:
    pattern = re.compile(rf"(?<![A-Za-z0-9])({'|'.join(map(re.escape, sorted(_names())))})(?![A-Za-z0-9])")
    found = [f"{line}: {m[0]}" for line, text in _code(path) for m in pattern.finditer(text)]
    assert not found, f"{path.name} names kernels or operators: {', '.join(found)}"


@pytest.mark.parametrize("word", ["tilegym", "kernel ==", "kernel in ("])
def test_no_branch_asks_which_kernel_it_is(word: str) -> None:
    found = [path.name for path in FILES if word in path.read_text()]
    assert not found, f"{word!r} occurs in {', '.join(found)}"
