"""Names of files that editors and tools leave beside the real ones. Knows no file system.

What has such a name and comes or goes is no news, unless it is itself a file that a build reads.
"""

from __future__ import annotations

import re

_TRANSIENT = re.compile(
    r"""
      .*~                                 # backups: vim, emacs, kate
    | 4913                                # vim tries whether the folder can be written
    | \..*\.sw[a-z] | \.sw[a-z]           # vim's swap files
    | \.\#.* | \#.*\#                     # emacs: locks and unsaved buffers
    | .*___jb_(tmp|old|bak)___            # JetBrains' safe write
    | .*\.vsctmp                          # VS Code's atomic save
    | \.goutputstream-.*                  # GLib: gedit
    | \..*\.kate-swp
    | sed[0-9A-Za-z]{6}                   # sed -i
    | .*\.(tmp|temp|bak|orig|rej|pyc)
    | __pycache__ | \.[a-z]+_cache
    | \.git | \.hg | \.jj | \.svn | \.idea | \.vscode
    | \.DS_Store | \.nfs[0-9a-f]+
    """,
    re.VERBOSE | re.DOTALL,
)


def is_transient(name: str) -> bool:
    """Whether a file or folder with this name says nothing about the source beside it."""
    return _TRANSIENT.fullmatch(name) is not None
