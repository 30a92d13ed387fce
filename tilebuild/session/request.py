"""What a `build`, `test` or `bench` asks for. Knows no workspace and no verb."""

from __future__ import annotations

from dataclasses import dataclass

#: How much `build` proves; each level includes those before it.
VERIFY_LEVELS = ("none", "compare", "cpu", "gpu", "bench")
#: How long a command waits for another one in the same workspace.
LOCK_PATIENCE_S = 600.0


@dataclass(frozen=True)
class Request:
    """What a `build`, `test` or `bench` was asked for; a port that is less safe than `style` fails.

    `allow_pending` lets tests pass whose verdict is still to be made on another machine.
    """

    verb: str
    patterns: tuple[str, ...]
    jobs: int = 0
    keep_going: bool = False
    dry_run: bool = False
    workers: bool = True
    verify: str = "gpu"
    style: str = ""
    allow_pending: bool = False
    sandbox: bool = True
    lock_patience_s: float = LOCK_PATIENCE_S
