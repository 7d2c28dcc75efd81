"""Some of a model's layers, as people write them: `22-23`, `0,5,7-9`, `first:4`, `last:2`."""

from __future__ import annotations

import re

from costcalc.errors import CostcalcError, shown

END = re.compile(r"(first|last)\s*:\s*(\d{1,9})", re.IGNORECASE | re.ASCII)
RANGE = re.compile(r"(\d{1,9})(?:\s*-\s*(\d{1,9}))?", re.ASCII)
LONGEST = 1_000


def parse_layers(text: str, depth: int, *, name: str) -> list[int]:
    """The indices from 0 to depth - 1 that `text` names, each once and in order; `name` is the option, for errors."""
    words = text.split(",") if len(text) <= LONGEST else []
    chosen = {layer for word in words for layer in _layers(word.strip(), text, depth, name)}
    if not chosen:
        raise _not_understood(text, depth, name)
    return sorted(chosen)


def _layers(word: str, text: str, depth: int, name: str) -> range:
    if match := END.fullmatch(word):
        count = int(match[2])
        if not 1 <= count <= depth:
            said = f"{name} {shown(word)} is not between 1 and all {depth:,} layers"
            raise CostcalcError(said, hint=f"{name} {match[1].lower()}:{min(2, depth)}")
        return range(count) if match[1].lower() == "first" else range(depth - count, depth)
    match = RANGE.fullmatch(word)
    if match is None:
        raise _not_understood(text, depth, name)
    begin, end = int(match[1]), int(match[2] or match[1])
    if begin > end:
        raise CostcalcError(f"{name} {shown(word)} runs backwards", hint=f"{name} {end}-{begin}")
    if end >= depth:
        last = depth - 1
        said = f"{name} {shown(word)}: the last of {depth:,} layers is {last:,}, the first is 0"
        raise CostcalcError(said, hint=f"{name} {_example(depth)}")
    return range(begin, end + 1)


def _not_understood(text: str, depth: int, name: str) -> CostcalcError:
    return CostcalcError(
        f"{shown(text)} names no layers", hint=f"{name} {_example(depth)}, or last:{min(2, depth)}, or 0,{depth - 1}"
    )


def _example(depth: int) -> str:
    """The last two layers, by their indices."""
    return f"{depth - 2}-{depth - 1}" if depth > 1 else "0"
