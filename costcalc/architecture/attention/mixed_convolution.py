"""Mixed attention (ConvBERT, arXiv 2008.02496, section 3): heads that attend, and as many that convolve spans.

A span's convolution makes its kernel of the token itself: of a query times a key that its neighbours make.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from costcalc.architecture.component import Component, Rule, Size
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record
from costcalc.units import several


class MixedConvolution(Component):
    """`heads` heads that attend and `heads` that convolve, of d_model / (2 heads) numbers each.

    taps: tokens that a span has, an odd number. All projections have biases, but for the two of the key of a span.
    """

    kind: Literal["mixed_convolution"] = "mixed_convolution"
    heads: Size
    taps: Size = 9
    window: ClassVar[None] = None
    chunk: ClassVar[None] = None
    cache_of: ClassVar[None] = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Twice the heads divide the model's width; as many places come out as go in."""
        yield d_model % (2 * self.heads) == 0, "d_model {d_model} is not a multiple of twice the heads {heads}"
        yield self.taps % 2 == 1, "a span of {taps} taps gives other places: an odd number is needed"

    def rotated(self, d_model: int) -> int:
        """Numbers of a head."""
        return d_model // (2 * self.heads)

    def sizes(self, d_model: int) -> tuple[int, int]:
        """(kv_heads, head_dim)."""
        return self.heads, d_model // (2 * self.heads)

    def left_out(self, d_model: int) -> dict[str, tuple[Any, str]]:
        """Nothing."""
        del d_model
        return {}

    def summary(self, d_model: int) -> str:
        """One line for a reader."""
        head_dim = d_model // (2 * self.heads)
        return f"{several(self.heads, 'head')} of {head_dim}, and as many that convolve spans of {self.taps}"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Projections, the core over the pairs, the kernels of spans and what they are multiplied by, the output."""
        width, of_heads = {"D": d_model}, {"N": self.heads, "H": d_model // (2 * self.heads)}
        for name in ("q", "k", "v"):
            yield from at.linear(name, stream.rows, width, of_heads, bias=True)
        pairs = stream.pairs(None, None)
        yield at.core("scores", {pairs.letters: pairs, **of_heads})
        yield at.core("values", {pairs.letters: pairs, **of_heads})
        neighbours = {"channels": d_model, "taps": self.taps}
        yield at.weight("span_depthwise", neighbours)
        yield at.product("span_depthwise", {stream.rows.letters: stream.rows, **neighbours})
        yield from at.linear("span_key", stream.rows, width, of_heads, bias=False)
        yield at.weight("span_key_bias", of_heads)
        yield from at.linear("span_kernel", stream.rows, of_heads, {"N_out": self.heads, "taps": self.taps}, bias=True)
        yield from at.linear("span_value", stream.rows, width, of_heads, bias=True)
        axes: dict[str, Any] = {stream.rows.letters: stream.rows, **of_heads, "taps": self.taps}
        yield at.under("spans").core("values", axes)
        yield from at.linear("output", stream.rows, {"two": 2, **of_heads}, width, bias=True)
