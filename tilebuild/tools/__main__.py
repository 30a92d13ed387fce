"""`python -P -m tilebuild.tools TOOL ARGUMENT…` runs one tool; `--serve FD` runs the warm worker instead.

Knows no tool but by its name: a module of this package, or any module given with its dots.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from tilebuild.tools import protocol


def main(argv: Sequence[str]) -> int:
    if len(argv) < 2:
        print("usage: python -m tilebuild.tools TOOL [ARGUMENT…]", file=sys.stderr)
        return 2
    if argv[1] == "--serve":
        from tilebuild.tools.zygote import serve

        return serve(int(argv[2]))
    name = argv[1]
    module = importlib.import_module(name if "." in name else f"tilebuild.tools.{name}")
    return protocol.run(module.main, argv[2:])


if __name__ == "__main__":
    sys.exit(main(sys.argv))
