"""`python -m tests`: format, lint, types, then every test. `--fast` leaves out what is marked slow.

The slow tests need the Rust driver. A build makes it first, where its progress is seen and no
test's time limit counts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests", description=__doc__)
    parser.add_argument("--fast", action="store_true", help="leave out the tests marked slow")
    parser.add_argument("pytest", nargs="*", help="further arguments for pytest, after --")
    arguments = parser.parse_args()

    python = [sys.executable, "-m"]
    checks = [
        [*python, "ruff", "format", "--check", "--quiet", "."],
        [*python, "ruff", "check", "--quiet", "."],
        [*python, "mypy"],
    ]
    failed = [check for check in checks if subprocess.run(check, cwd=ROOT).returncode]
    for check in failed:
        print("failed:", " ".join(check[2:]), flush=True)
    if not arguments.fast:
        driver = ["tilebuild", "build", "//kernels:vector_add", "--arch", "sm_90", "--verify=compare"]
        subprocess.run([*python, *driver], cwd=ROOT, check=True)
    selection = ["-m", "not slow"] if arguments.fast else []
    tests = subprocess.run([*python, "pytest", *selection, *arguments.pytest], cwd=ROOT)
    return tests.returncode or int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
