"""Layers that lend their keys and values, called by their number: so two models can be compared, and changed.

A name is anyone's choice, and a copy in which a few fields differ has other groups of equal layers, so that none keeps
its name. Between two models `cache_of: layer18` says which layer is read, whatever it is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from costcalc.architecture.attention import GroupedQuery
from costcalc.architecture.block import Block
from costcalc.architecture.stack import Pattern, Stack

Entry = Block | Pattern
Where = tuple[int, ...]
"""Of an entry: its place in the stack, and in each pattern that it is in."""
NUMBERED = re.compile(r"layer(\d+)")


def numbered(stack: Stack) -> Stack:
    """The stack with each lender called by the number of the layer that is read, and no other layer by any name.

    As it is where nothing is read, or where one entry stands for layers that lend or read differently.
    """
    order = list(_in_order(stack.layers))
    if not any(_read_by(block) for block, _ in order):
        return stack
    latest: dict[str | None, tuple[int, Where]] = {}
    names: dict[Where, set[str]] = {}
    reads: dict[Where, set[str]] = {}
    for number, (block, where) in enumerate(order):
        if (name := _read_by(block)) is not None:
            lender, at = latest[name]
            names.setdefault(at, set()).add(f"layer{lender}")
            reads.setdefault(where, set()).add(f"layer{lender}")
        latest[block.name] = number, where
    if any(len(found) > 1 for found in (*names.values(), *reads.values())):
        return stack
    return stack.model_copy(update={"layers": _renamed(stack.layers, (), names, reads)})


def _in_order(entries: Sequence[Entry], at: Where = ()) -> Iterator[tuple[Block, Where]]:
    for number, entry in enumerate(entries):
        for _ in range(entry.repeat):
            if isinstance(entry, Pattern):
                yield from _in_order(entry.pattern, (*at, number))
            else:
                yield entry, (*at, number)


def _read_by(block: Block) -> str | None:
    return block.attention.cache_of if block.attention is not None else None


def _renamed(
    entries: Sequence[Entry], at: Where, names: dict[Where, set[str]], reads: dict[Where, set[str]]
) -> tuple[Entry, ...]:
    made: list[Entry] = []
    for number, entry in enumerate(entries):
        where = (*at, number)
        if isinstance(entry, Pattern):
            made.append(entry.model_copy(update={"pattern": _renamed(entry.pattern, where, names, reads)}))
            continue
        changed: dict[str, Any] = {"name": next(iter(names.get(where, ())), None)}
        if where in reads and isinstance(entry.attention, GroupedQuery):
            changed["attention"] = entry.attention.model_copy(update={"cache_of": next(iter(reads[where]))})
        made.append(entry.model_copy(update=changed))
    return tuple(made)


def name_lenders(entries: list[dict[str, Any]]) -> None:
    """In plain data: the entry of each layer that is read by its number gets that name, and all others lose theirs.

    Names that are read and are no numbers stay.
    """
    read = {name for entry in _plain(entries) if (name := (entry.get("attention") or {}).get("cache_of")) is not None}
    numbers = {int(match[1]): name for name in read if (match := NUMBERED.fullmatch(name))}
    kept = read - set(numbers.values())
    for entry in _plain(entries):
        if entry.get("name") not in kept:
            entry.pop("name", None)
    for number, name in numbers.items():
        entry, depth = _holding(entries, number)
        if depth > 0:
            entry["name"] = name


def _plain(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        if "pattern" in entry:
            yield from _plain(entry["pattern"])
        else:
            yield entry


def _holding(entries: list[dict[str, Any]], number: int) -> tuple[dict[str, Any], int]:
    """The entry that layer `number` is written in, and of how many layers; of none where there are fewer."""
    for entry in entries:
        inside = entry.get("pattern")
        once = 1 if inside is None else _depth(inside)
        if number < once * entry["repeat"]:
            return (entry, entry["repeat"]) if inside is None else _holding(inside, number % once)
        number -= once * entry["repeat"]
    return {}, 0


def _depth(entries: list[dict[str, Any]]) -> int:
    return sum(e["repeat"] * (_depth(e["pattern"]) if "pattern" in e else 1) for e in entries)
