"""What the assembler answers: a cubin at once, a refusal when it holds, nothing that a killed child left
behind.

A script stands in for the assembler; it does what its n-th run is told to do.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tilebuild import toolchain
from tilebuild.settings import ARCHITECTURES
from tilebuild.tileir.assemble import AssemblerCrash, Refusal, assemble

REFUSE = "echo 'error: failed to compile Tile IR program' >&2; exit 5"
OTHERWISE = "echo 'error: something else' >&2; exit 5"
#: `tileiras --gpu-name A --opt-level 3 -o CUBIN SOURCE`
MAKE = 'printf cubin > "$6"'


def _assembler(folder: Path, *runs: str) -> str:
    script = folder / "tileiras"
    cases = "\n".join(f"{number}) {run} ;;" for number, run in enumerate(runs, 1))
    count = folder / "count"
    script.write_text(
        f"#!/bin/sh\necho >> {count}\ncase $(wc -l < {count} | tr -d ' ') in\n{cases}\n*) exit 9 ;;\nesac\n"
    )
    script.chmod(0o755)
    return str(script)


def _answer(folder: Path, *runs: str) -> bytes | Refusal:
    program = _assembler(folder, *runs)
    path = {"PATH": "/usr/bin:/bin"}
    return assemble(b"byte code", program, "sm_90", fixed_layout=False, environment=path)


def test_a_cubin_is_an_answer_at_once(tmp_path: Path) -> None:
    assert _answer(tmp_path, MAKE) == b"cubin"


def test_a_refusal_that_holds_is_an_answer(tmp_path: Path) -> None:
    assert _answer(tmp_path, REFUSE, REFUSE) == Refusal("error: failed to compile Tile IR program")


def test_a_refusal_that_does_not_hold_is_forgotten(tmp_path: Path) -> None:
    """As when the kernel kills a child of the assembler in the first run."""
    assert _answer(tmp_path, REFUSE, MAKE) == b"cubin"


def test_two_different_refusals_are_no_answer(tmp_path: Path) -> None:
    with pytest.raises(AssemblerCrash):
        _answer(tmp_path, REFUSE, OTHERWISE)


def test_settings_know_what_the_assembler_knows() -> None:
    told = subprocess.run([toolchain.tool("tileiras").path, "--help"], capture_output=True, text=True).stdout
    assert tuple(re.findall(r"=(sm_\w+) ", told)) == ARCHITECTURES
