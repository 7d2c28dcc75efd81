"""RWKV-4's channel mixing (arXiv 2305.13048, section 3.1, equations 20 to 22)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.component import Component, Size
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record


class RWKVChannel(Component):
    """sigmoid(r) * (relu(k)^2 W_v), where k and r are products of each token mixed with the one before it.

    Held of a sequence are that token's D numbers.
    """

    kind: Literal["rwkv_channel"] = "rwkv_channel"
    d_ff: Size

    def summary(self) -> str:
        """One line for a reader."""
        return f"RWKV-4 channel mixing, {self.d_ff:,} wide"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """D -> F, D -> D and F -> D."""
        rows, width = stream.rows, {"D": d_model}
        yield at.weight("mix_k", width)
        yield from at.linear("k", rows, width, {"F": self.d_ff}, bias=False)
        yield at.weight("mix_r", width)
        yield from at.linear("r", rows, width, {"D_out": d_model}, bias=False)
        yield from at.linear("v", rows, {"F": self.d_ff}, width, bias=False)
        yield at.state("shift_state", width)
