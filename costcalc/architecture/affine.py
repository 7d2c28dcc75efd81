"""A gain and a shift of each channel, learned, without a norm before them."""

from __future__ import annotations

from collections.abc import Iterator

from costcalc.architecture.places import At
from costcalc.inventory import Record


def affine_records(at: At, name: str, d_model: int) -> Iterator[Record]:
    """(x + shift) * gain: D numbers each, no product of matrices."""
    yield at.weight(f"{name}_gain", {"D": d_model})
    yield at.weight(f"{name}_shift", {"D": d_model})
