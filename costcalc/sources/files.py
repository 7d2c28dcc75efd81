"""Text of a file or of standard input: bounded, UTF-8, never a directory, and an error for each way it can fail."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

from costcalc.errors import CostcalcError

MOST_BYTES = 16 * 2**20
LONGEST_WAIT = 3.0
"""Seconds for the first byte of a pipe."""


def read_text(source: str) -> str:
    """The text of the file at `source`, or of standard input for `-`."""
    label = "standard input" if source == "-" else source
    raw = _stdin() if source == "-" else _file(source)
    if len(raw) > MOST_BYTES:
        raise CostcalcError("larger than 16 MiB", where=label, hint="give the config.json or the YAML, not the weights")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CostcalcError(
            f"not UTF-8 text (byte {error.start:,})", where=label, hint="give a YAML file or a config.json"
        ) from None
    if "\0" in text:
        raise CostcalcError("a binary file, not text", where=label, hint="give a YAML file or a config.json")
    if text.startswith("version https://git-lfs"):
        raise CostcalcError("a Git LFS pointer, not the file itself", where=label, hint="git lfs pull fetches the file")
    if not text.strip():
        raise CostcalcError("empty", where=label, hint="costcalc schema describes what to write")
    return text


def is_file(path: str) -> bool:
    """Whether a file of that name is there; a word that can be no path is not."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: str) -> bool:
    """Whether a folder of that name is there."""
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False


def config_inside(path: str) -> str | None:
    """The config.json of a folder; None for what is no folder, or has none."""
    try:
        inside = Path(path) / "config.json"
        return str(inside) if inside.is_file() else None
    except (OSError, ValueError):
        return None


def _stdin() -> bytes:
    if sys.stdin is None:
        raise CostcalcError("closed", where="standard input", hint="cat model.yaml | costcalc COMMAND -")
    try:
        return sys.stdin.buffer.read(MOST_BYTES + 1)
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
        raise CostcalcError(reason, where="standard input", hint="cat model.yaml | costcalc COMMAND -") from None


def _pipe(path: Path) -> bytes:
    """What comes through a named pipe, such as a shell's <(command); one that nobody writes to is not waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        if not select.select([handle], [], [], LONGEST_WAIT)[0]:
            raise CostcalcError(
                "a pipe that nothing comes through", where=str(path), hint="give a file, or - for stdin"
            )
        os.set_blocking(handle, True)
        return file.read(MOST_BYTES + 1)


def _file(source: str) -> bytes:
    path = Path(source)
    try:
        if path.is_dir():
            raise CostcalcError(
                "a folder without a config.json", where=source, hint="give a YAML file, a config.json or its folder"
            )
        if path.is_fifo():
            return _pipe(path)
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise CostcalcError("no such file", where=source, hint="costcalc presets lists what is bundled") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise CostcalcError(
            f"cannot be read: {reason}", where=source, hint="check the path and its permissions"
        ) from None
