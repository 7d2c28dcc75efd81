"""A gated short convolution, the mixer of LFM2 (arXiv 2511.23404; `Lfm2ShortConv`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.component import Component, Flag, Size
from costcalc.architecture.mixer.state import convolution
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record


class ShortConv(Component):
    """C * conv(B * x) of three projections of the input, over its latest tokens.

    d_conv: how many of them. bias: on both projections and the convolution.
    """

    kind: Literal["short_conv"] = "short_conv"
    d_conv: Size = 3
    bias: Flag = False

    def summary(self) -> str:
        """One line for a reader."""
        return f"gated short convolution of {self.d_conv} taps{', biases' if self.bias else ''}"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """D -> B, C, x; the convolution; D -> D."""
        width = {"D": d_model}
        yield from at.linear("input", stream.rows, width, {"entered": 3 * d_model}, bias=self.bias)
        yield from convolution(at, d_model, self.d_conv, bias=self.bias)
        yield from at.linear("output", stream.rows, width, {"D_out": d_model}, bias=self.bias)
