"""The text of a Python file, decoded as Python itself does. Knows nothing of what the text means."""

from __future__ import annotations

import tokenize
from os import PathLike

from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError, Span


def read_python(path: str | PathLike[str], name: str = "") -> str:
    """The text in the encoding that its first lines declare, else UTF-8; `name` is what messages call it.

    Raises `DiagnosticError` for a file that is no text in its encoding, and OSError.
    """
    try:
        with tokenize.open(path) as file:
            return file.read()
    except (SyntaxError, UnicodeDecodeError) as error:
        fact = f"the file is no text in its encoding: {error}"
        help = "save it as UTF-8, or declare its encoding in the first line: # -*- coding: latin-1 -*-"
        raise DiagnosticError(Diagnostic(fact, Blame.KERNEL, Span(name or str(path)), help=help)) from None
