"""A sliding window and a few tokens that see all, with projections of their own (Longformer, arXiv 2004.05150)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.attention.several_heads import SeveralHeads
from costcalc.architecture.component import Flag, PositiveFloat, Rule, Size, Whole
from costcalc.architecture.places import At, Stream
from costcalc.inventory import FirstRows, Record, SlidingPairs
from costcalc.units import several


class Sliding(SeveralHeads):
    """`heads` heads; each token sees itself and `window // 2` tokens to either side (Longformer, LED).

    head_dim: None means d_model / heads. bias: on queries, keys and values, out_bias: on the output projection. first:
    that many first tokens see all, and are seen by all. Queries, keys and values of what those see are made by a second
    set of projections, which is held in any case. scale: what scores are multiplied by, None for 1 / sqrt(head_dim); it
    changes no count. Kernels are handed overlapping chunks of a window.
    """

    kind: Literal["sliding"] = "sliding"
    bias: Flag = True
    out_bias: Flag = True
    window: Size
    first: Whole = 0
    scale: PositiveFloat | None = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """A window reaches to another token."""
        yield from super().rules(d_model)
        yield self.window >= 2, "a window of {window} reaches to no other token", "write at least 2"

    def summary(self, d_model: int) -> str:
        """One line for a reader."""
        seen = [f"{several(self.first, 'first token')} with all"] if self.first else []
        return self.said(d_model, f"window {self.window:,}", *seen)

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Both sets of projections, the pairs of windows and of first tokens, the output."""
        yield from self.projections(at, d_model, stream.rows, stream.rows, bias=self.bias)
        first = FirstRows(stream.text, self.first), FirstRows(stream.text, self.first, others=True)
        for name, rows in zip(("global_q", "global_k", "global_v"), (first[0], first[1], first[1]), strict=True):
            yield from at.linear(name, rows, {"D": d_model}, self.axes(d_model), bias=self.bias)
        pairs = [SlidingPairs(stream.text, self.window, self.first, of_values) for of_values in (False, True)]
        yield from self.core(at, d_model, *pairs)
        yield from self.output(at, d_model, stream.rows, bias=self.out_bias)
