"""A line on standard error, where there is one."""

from __future__ import annotations

import os
import sys


def tell(line: str) -> None:
    """Write a line in characters that its encoding has; if it is closed or full, the exit code alone has to say it."""
    if sys.stderr is None:
        return
    encoding = sys.stderr.encoding or "ascii"
    try:
        print(line.encode(encoding, "replace").decode(encoding), file=sys.stderr, flush=True)
    except OSError:
        # The interpreter must not fail once more when it flushes at exit, with an exit code of its own.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
