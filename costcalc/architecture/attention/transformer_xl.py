"""Attention of Transformer-XL (arXiv 1901.02860, section 3.3), as XLNet (1906.08237) has it: sinusoids of distances.

Rows of sinusoids, one for each distance between two tokens, are projected like keys, in each sequence anew, and every
query meets all of them, of which each pair then takes its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from costcalc.architecture.component import Component, Rule, Size
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Distances, EachDistances, Record
from costcalc.units import several


class TransformerXL(Component):
    """`heads` heads of d_model / heads, without biases on their projections.

    Queries are shifted by a learned vector of each head before they meet keys, and by another before they meet
    distances. segments: so many vectors a head, and one more shift, are held for texts that come in parts (XLNet); a
    text alone multiplies by none.
    """

    kind: Literal["transformer_xl"] = "transformer_xl"
    heads: Size
    segments: Size | None = None
    window: ClassVar[None] = None
    chunk: ClassVar[None] = None
    cache_of: ClassVar[None] = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """The model's width divides among the heads; half of a sinusoid's row are sines."""
        yield d_model % self.heads == 0, "d_model {d_model} is not a multiple of heads {heads}", "change one of the two"
        yield d_model % 2 == 0, "d_model {d_model} is odd: half of a row of sinusoids are sines", "write an even number"

    def rotated(self, d_model: int) -> int:
        """Numbers of a head; no rotary positions turn any."""
        return d_model // self.heads

    def sizes(self, d_model: int) -> tuple[int, int]:
        """(kv_heads, head_dim)."""
        return self.heads, d_model // self.heads

    def left_out(self, d_model: int) -> dict[str, tuple[Any, str]]:
        """Nothing."""
        del d_model
        return {}

    def summary(self, d_model: int) -> str:
        """One line for a reader."""
        parts = "" if self.segments is None else f", {several(self.segments, 'segment')}"
        return f"{several(self.heads, 'head')} of {d_model // self.heads}, sinusoids of distances{parts}"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Projections of tokens and of distances, shifts, scores of both, values, the output."""
        width, of_heads = {"D": d_model}, {"N": self.heads, "H": d_model // self.heads}
        for name in ("q", "k", "v"):
            yield from at.linear(name, stream.rows, width, of_heads, bias=False)
        yield from at.linear("distance_k", EachDistances(), width, of_heads, bias=False)
        for name in ("content_shift", "distance_shift"):
            yield at.weight(name, of_heads)
        if self.segments is not None:
            yield at.weight("segment_shift", of_heads)
            yield at.weight("segments", {"segments": self.segments, **of_heads})
        pairs, every = stream.pairs(None, None), Distances(None)
        yield at.core("scores", {pairs.letters: pairs, **of_heads})
        axes: dict[str, Any] = {stream.rows.letters: stream.rows, every.letters: every, **of_heads}
        yield at.under("to_position").core("scores", axes)
        yield at.core("values", {pairs.letters: pairs, **of_heads})
        yield from at.linear("output", stream.rows, of_heads, width, bias=False)
