"""A line on standard error, where there is one, and text in the characters that a stream has."""

from __future__ import annotations

import os
import sys
from typing import TextIO


def tell(line: str) -> None:
    """Write a line in characters that its encoding has; if it is closed or full, the exit code alone has to say it."""
    if sys.stderr is None:
        return
    try:
        print(shown_in(line, sys.stderr), file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """After a failed write: the interpreter must not fail once more when it flushes at exit, with a code of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def shown_on_stderr(text: str) -> str:
    """The text as standard error can show it, before its columns are counted: a character for each that it lacks."""
    return text if sys.stderr is None else shown_in(text, sys.stderr)


def shown_in(text: str, stream: TextIO) -> str:
    """The text with what the stream's encoding lacks replaced: a product's dot by *, all else by a question mark."""
    encoding = stream.encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.replace("·", "*")
    return text.encode(encoding, "replace").decode(encoding)
