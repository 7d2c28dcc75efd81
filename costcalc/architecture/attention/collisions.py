"""Attention by how often queries and keys would fall into one bucket of a hash (YOSO, arXiv 2111.09714)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.attention.several_heads import SeveralHeads
from costcalc.architecture.component import Flag, Rule, Size
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record


class Collisions(SeveralHeads):
    """`heads` heads; values are weighed by the chance that query and key have one hash of `bits` bits, in expectation.

    head_dim: None means d_model / heads. bias: on queries, keys and values, out_bias: on the output projection. bits:
    of a hash; the chance is (1 - angle / pi)^bits, and it changes no count. What comes out has length 1. taps: beside
    it, each head's values are convolved over so many tokens, an odd number; None for no convolution.
    """

    kind: Literal["collisions"] = "collisions"
    bias: Flag = True
    out_bias: Flag = True
    bits: Size = 9
    taps: Size | None = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """A convolution around a token takes an odd number."""
        yield from super().rules(d_model)
        yield (
            self.taps is None or self.taps % 2 == 1,
            "`taps` {taps} are even: as many are before a token as behind",
        )

    def summary(self, d_model: int) -> str:
        """One line for a reader."""
        beside = [] if self.taps is None else [f"values convolved over {self.taps}"]
        return self.said(d_model, f"weights of colliding hashes of {self.bits} bits", *beside)

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Projections, all pairs, the convolution, the output."""
        yield from self.projections(at, d_model, stream.rows, stream.rows, bias=self.bias)
        pairs = stream.pairs(None, None)
        yield from self.core(at, d_model, pairs, pairs)
        yield from self.convolved_values(at, d_model, stream.rows, self.taps)
        yield from self.output(at, d_model, stream.rows, bias=self.out_bias)
