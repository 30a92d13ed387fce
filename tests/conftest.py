"""What every test may count on: Ctrl-C works, also where the tests were started in the background."""

from __future__ import annotations

import signal

# A shell without job control starts background commands with SIGINT ignored; Python keeps that, and so do
# children.
signal.signal(signal.SIGINT, signal.default_int_handler)
