"""What a checkpoint holds: a fold over its stored tensors, by dtype and by quantisation."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from costcalc.inventory.packing import SCALE, Meaning, meanings
from costcalc.inventory.stored import Checkpoint, Stored

MOST_WHY = 3


@dataclass(frozen=True, slots=True)
class ByDtype:
    """All tensors of one dtype or block format: how many, their elements as stored and their bytes."""

    dtype: str
    tensors: int
    elements: int
    bytes: int

    @property
    def bits(self) -> Fraction | None:
        """Bits of an element, scales inside of its blocks included; None of nothing."""
        return Fraction(8 * self.bytes, self.elements) if self.elements else None


@dataclass(frozen=True, slots=True)
class StoredTotals:
    """Exact, from headers alone. parameters: the weights that the tensors stand for, unpacked, without buffers and
    scales; None where some of them cannot be told, and `why`. elements and bytes: everything as stored. buffers:
    elements of tensors that a model makes anew, in `buffer_bytes`. packings: how many weights are packed in which way.
    """

    parameters: int | None
    elements: int
    bytes: int
    buffers: int
    buffer_bytes: int
    by_dtype: tuple[ByDtype, ...]
    packings: dict[str, int]
    meanings: tuple[Meaning, ...]
    why: str = ""

    @property
    def bits(self) -> Fraction | None:
        """Bits a weight, over all that is stored but buffers: scales are part of it."""
        return Fraction(8 * (self.bytes - self.buffer_bytes), self.parameters) if self.parameters else None


def stored(checkpoint: Checkpoint) -> StoredTotals:
    """Add up what the headers say."""
    found = meanings(checkpoint)
    weights = [each for each in found if not each.is_buffer]
    buffers = [each for each in found if each.is_buffer and each.packing != SCALE]
    known = [each.parameters for each in weights if each.parameters is not None]
    unknown = [each.why for each in weights if each.parameters is None]
    packings: dict[str, int] = {}
    for each in weights:
        if each.packing:
            packings[each.packing] = packings.get(each.packing, 0) + 1
    more = f"; and {len(unknown) - MOST_WHY:,} more" if len(unknown) > MOST_WHY else ""
    return StoredTotals(
        parameters=None if unknown else sum(known),
        elements=sum(each.elements for each in checkpoint.tensors),
        bytes=sum(each.bytes for each in checkpoint.tensors),
        buffers=sum(each.parameters or 0 for each in buffers),
        buffer_bytes=sum(each.bytes for each in buffers),
        by_dtype=_by_dtype(checkpoint.tensors),
        packings=packings,
        meanings=found,
        why="; ".join(unknown[:MOST_WHY]) + more,
    )


def _by_dtype(tensors: tuple[Stored, ...]) -> tuple[ByDtype, ...]:
    """The dtypes, the one with the most bytes first."""
    groups: dict[str, list[Stored]] = {}
    for tensor in tensors:
        groups.setdefault(tensor.dtype, []).append(tensor)
    rows = [
        ByDtype(dtype, len(held), sum(each.elements for each in held), sum(each.bytes for each in held))
        for dtype, held in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.bytes, row.dtype)))
