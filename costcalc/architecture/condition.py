"""A gain of each channel that follows from one condition of a whole pass, by two matrices of a low rank."""

from __future__ import annotations

from collections.abc import Iterator

from costcalc.architecture.places import At
from costcalc.inventory import Record


def condition_records(at: At, d_model: int, rank: int) -> Iterator[Record]:
    """D -> R -> D for one row, whatever the batch and the tokens (`VoxtralRealtimeTextAdaRmsNorm`)."""
    for name, axes in (("in", {"D": d_model, "condition": rank}), ("out", {"condition": rank, "D": d_model})):
        yield at.weight(name, axes)
        yield at.product(name, {"one": 1, **axes})
