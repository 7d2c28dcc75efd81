"""RWKV-4's time mixing (arXiv 2305.13048, section 3.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.component import Component, Size
from costcalc.architecture.mixer.state import StateDtype, recurrence
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record


class RWKV(Component):
    """A weighted mean of all values, `width` channels of them, whose weights decay with time.

    Each token is mixed with the one before it. Held of a sequence: that token's D numbers, and of each channel the
    running numerator and denominator and the maximum that keeps both in range. state_dtype: of those three.
    """

    kind: Literal["rwkv"] = "rwkv"
    width: Size
    state_dtype: StateDtype = "fp32"

    def summary(self) -> str:
        """One line for a reader."""
        return f"RWKV-4 time mixing, {self.width:,} channels"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """D -> k, v, r; numerator and output of each channel (equations 16 to 19); -> D."""
        rows, width, inner = stream.rows, {"D": d_model}, {"d_inner": self.width}
        for name in ("time_decay", "time_first"):
            yield at.weight(name, inner)
        for name in ("k", "v", "r"):
            yield at.weight(f"mix_{name}", width)
            yield from at.linear(name, rows, width, inner, bias=False)
        yield from recurrence(at, stream, "scan_update", "scan_read", axes=inner)
        yield at.state("shift_state", width)
        yield at.state("state", {"sums": 3, **inner}, dtype=self.state_dtype)
        yield from at.linear("output", rows, inner, width, bias=False)
