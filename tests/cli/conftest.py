from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.end_to_end.space import TEXT_PACKAGE, Done, Space
from tilebuild.cli.main import run


class QuickSpace(Space):
    """Runs the command in this process: a tenth of the time, and nearly the same."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, output: pytest.CaptureFixture[str]) -> None:
        super().__init__(folder)
        self._patch = patch
        self._output = output

    def run(self, *arguments: str, cwd: str = ".", environment: Mapping[str, str] | None = None) -> Done:
        self._output.readouterr()
        with self._patch.context() as patch:
            patch.chdir(self.root / cwd)
            for name, value in {**self.environment, **(environment or {})}.items():
                patch.setenv(name, value)
            code = run(["tilebuild", *arguments])
        out, err = self._output.readouterr()
        return Done(int(code), out, err)


@pytest.fixture
def space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[QuickSpace]:
    """A workspace with the package `text`."""
    found = QuickSpace(tmp_path, monkeypatch, capsys)
    found.write("text/BUILD", TEXT_PACKAGE)
    found.write("text/in.txt", "a\nb\n")
    yield found
    gc.enable()  # the command switches it off, since its process ends soon
