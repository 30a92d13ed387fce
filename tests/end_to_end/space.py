"""A workspace in a temporary folder, and the real command run in it as a user runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "tilebuild"]


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of actions in the last line, by how they ended; empty for a no-op."""
        found = re.search(r"; actions: ([^;]*)", self.out)
        parts = found.group(1).split(", ") if found else []
        return {word: int(number) for number, _, word in (part.partition(" ") for part in parts)}


class Space:
    """Files under `root`; cache and home folder lie beside it, so that nothing of the user is touched."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "workspace"
        self.root.mkdir(parents=True)
        self.write("tilebuild.toml", "")

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def read(self, path: str) -> str:
        return (self.root / "tilebuild-out" / path).read_text()

    @property
    def environment(self) -> dict[str, str]:
        kept = {
            name: os.environ[name]
            for name in ("PATH", "LANG", "CARGO_HOME", "RUSTUP_HOME")
            if name in os.environ
        }
        return {
            "CARGO_HOME": os.path.expanduser("~/.cargo"),
            "RUSTUP_HOME": os.path.expanduser("~/.rustup"),
            **kept,
            "HOME": str(self.folder),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
        }

    def start(self, *arguments: str, cwd: str = ".", **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=self.root / cwd,
            env=self.environment | options.pop("environment", {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def run(self, *arguments: str, cwd: str = ".", environment: Mapping[str, str] | None = None) -> Done:
        process = self.start(*arguments, cwd=cwd, environment=dict(environment or {}))
        out, err = process.communicate(timeout=120)
        return Done(process.returncode, out, err)

    def ok(self, *arguments: str, **options: Any) -> Done:
        done = self.run(*arguments, **options)
        assert done.code == 0, done.text
        return done

    def events(self, *arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run(*arguments).out.splitlines()]


#: Two steps: letters are made large, then lines are counted.
TEXT_PACKAGE = """
package(default_visibility = ["//visibility:public"])
genrule(name = "upper", srcs = ["in.txt"], outs = ["upper.txt"], cmd = "tr a-z A-Z < $(SRCS) > $@")
genrule(name = "count", srcs = [":upper"], outs = ["count.txt"], cmd = "wc -l < $(SRCS) | tr -d ' ' > $@")
"""
