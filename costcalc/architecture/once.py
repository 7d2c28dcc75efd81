"""Equal layers that were written out one by one are validated, checked and compared once: reading stays quick."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from costcalc.architecture.block import Block

FEW = 4
"""So many layers are not worth it."""


def each_once(entries: Any, validate: Callable[[Any], tuple[Any, ...]]) -> tuple[Any, ...]:
    """The validated entries of a stack, those of one content as one block but for `repeat`.

    An importer hands the very same parts over for equal layers, so their identity tells. Where anything is wrong, all
    of them are validated as they were written, so that an error names the right one.
    """
    if not isinstance(entries, list) or len(entries) < FEW:
        return validate(entries)
    first: dict[Any, int] = {}
    order = [first.setdefault(_content(entry, number), number) for number, entry in enumerate(entries)]
    if len(first) == len(entries):
        return validate(entries)
    try:
        distinct = dict(zip(first.values(), validate([entries[number] for number in first.values()]), strict=True))
    except ValueError:
        return validate(entries)
    return tuple([_repeated(distinct[number], entry) for number, entry in zip(order, entries, strict=True)])


def _content(entry: Any, number: int) -> Any:
    """What tells whether two entries are the same: of layers the identity of each part; anything else is by itself."""
    if not isinstance(entry, dict) or "pattern" in entry or not _is_count(entry.get("repeat", 1)):
        return number
    return tuple([(key, id(value)) for key, value in entry.items() if key != "repeat"])


def _is_count(repeat: Any) -> bool:
    return type(repeat) is int and 1 <= repeat <= 10**12


def _repeated(block: Any, entry: Any) -> Any:
    repeat = entry.get("repeat", 1) if isinstance(entry, dict) else None
    return block if repeat in (None, block.repeat) else block.model_copy(update={"repeat": repeat})


def parts_of(block: Block) -> tuple[int, ...]:
    """The identity of each of its parts but `repeat`: blocks with the same ones are equal, without a look inside."""
    return tuple([id(value) for key, value in block.__dict__.items() if key != "repeat"])
