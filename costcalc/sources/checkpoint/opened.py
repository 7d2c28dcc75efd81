"""Files of weights, opened with care: regular ones only, their size known, and what is no checkpoint told apart."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from costcalc.errors import CostcalcError, shown

POINTER = b"version https://git-lfs"
PAGES = (b"<!doctype", b"<html", b"<?xml")
LONGEST_NAME = 1_024
"""Characters of a tensor's name; the longest of published ones have about a hundred."""
MOST_TENSORS = 200_000
"""Of one file; an index may have more."""
MOST_PLACED = 500_000
"""Tensors of an index; DeepSeek-V3's has 92,000."""
MOST_DIMENSIONS = 8
LARGEST_SIZE = 2**62
INSTALL = "pip install 'costcalc[checkpoints]'"


def refusal(path: Path, what: str, hint: str = "") -> CostcalcError:
    """An error about one file."""
    return CostcalcError(what, where=str(path), hint=hint or "fetch the file again; it may have been cut or damaged")


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """The open file and its size in bytes; a pipe, a device or a folder is none."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise refusal(path, "not a regular file", "give a file of weights, or the folder that holds it")
            yield file, found.st_size
    except FileNotFoundError:
        raise refusal(path, "no such file", "check the name; costcalc presets lists what is bundled") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise refusal(path, f"cannot be read: {reason}", "check the path and its permissions") from None


def refuse_others(path: Path, start: bytes) -> None:
    """Refuse what is no file of weights at all, by its first bytes."""
    if not start:
        raise refusal(path, "empty")
    if start.startswith(POINTER):
        raise refusal(path, "a Git LFS pointer, not the file itself", "git lfs pull fetches the file")
    if start.lower().startswith(PAGES):
        raise refusal(path, "a web page, not a file of weights")


def bounded_json(raw: bytes, path: Path) -> dict[str, Any]:
    """The object that a header or an index holds; duplicate keys, NaN and deep nesting are refused."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        data = dict(pairs)
        if len(data) != len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise refusal(path, f"the key {shown(twice)} is written twice in the header")
        return data

    def constant(name: str) -> Any:
        raise refusal(path, f"{name} in the header is not a number")

    _refuse_bombs(raw, path)
    try:
        data = json.loads(raw.decode("utf-8"), object_pairs_hook=unique, parse_constant=constant)
    except UnicodeDecodeError as error:
        raise refusal(path, f"the header is not UTF-8 (byte {error.start:,})") from None
    except json.JSONDecodeError as error:
        raise refusal(path, f"the header is not JSON: {error.msg} (character {error.pos:,})") from None
    except RecursionError:
        raise refusal(path, "the header is nested too deeply") from None
    except ValueError:
        raise refusal(path, "the header has a number of thousands of digits") from None
    if not isinstance(data, dict):
        raise refusal(path, f"the header is {shown(data)}, not an object of tensors")
    return data


def _refuse_bombs(raw: bytes, path: Path) -> None:
    """Refuse what would take many times its own size in memory: a tensor's entry has some fifty characters at least, of
    which few are brackets and commas, and four keys.
    """
    if raw.count(b"[") + raw.count(b"{") > len(raw) // 8 + 1_024:
        raise refusal(path, "the header is nested too deeply, or made of brackets")
    if raw.count(b",") > len(raw) // 5 + 1_024:
        raise refusal(path, "the header is made of commas")
    tensors = raw.count(b'"data_offsets"')
    if tensors > MOST_TENSORS:
        raise refusal(path, f"{tensors:,} tensors; at most {MOST_TENSORS:,} are read")
    keys = raw.count(b'":') - raw.count(b'\\":')
    if keys > 4 * tensors + MOST_PLACED:
        raise refusal(path, f"{keys:,} keys; {MOST_PLACED:,} are more than any model needs")


def checked_name(name: object, path: Path) -> str:
    """A tensor's name that may be printed."""
    if not isinstance(name, str) or not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise refusal(path, f"{shown(name)} cannot be the name of a tensor")
    return name


def is_size(value: object, *, largest: int = LARGEST_SIZE) -> bool:
    """Whether a header's value is a size or an offset: a whole number, no boolean, from 0 on."""
    return type(value) is int and 0 <= value <= largest
