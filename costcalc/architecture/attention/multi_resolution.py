"""Blocks of pairs in full where means of blocks say so, and as means elsewhere (MRA, arXiv 2207.10284)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.attention.several_heads import SeveralHeads
from costcalc.architecture.component import Flag, PositiveFloat, Size
from costcalc.architecture.places import At, Stream
from costcalc.inventory import ChosenBlocks, Record
from costcalc.units import several


class MultiResolution(SeveralHeads):
    """`heads` heads; of all pairs of blocks of `block` tokens each head has its best `blocks` in full.

    head_dim: None means d_model / heads. bias: on queries, keys and values, out_bias: on the output projection. blocks:
    pairs of blocks that a text has in full, chosen by the products of their means. coarse: all other pairs of blocks
    count as their means do; false leaves them out. scale: what scores are multiplied by, None for 1 / sqrt(head_dim);
    it changes no count.
    """

    kind: Literal["multi_resolution"] = "multi_resolution"
    bias: Flag = True
    out_bias: Flag = True
    block: Size = 32
    blocks: Size
    coarse: Flag = True
    scale: PositiveFloat | None = None

    def summary(self, d_model: int) -> str:
        """One line for a reader."""
        rest = "the rest as means" if self.coarse else "no others"
        return self.said(d_model, f"{several(self.blocks, 'pair')} of blocks of {self.block:,}, {rest}")

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Projections, pairs of means and of chosen blocks, the output."""
        yield from self.projections(at, d_model, stream.rows, stream.rows, bias=self.bias)
        scores = ChosenBlocks(stream.text, self.block, self.blocks)
        values = ChosenBlocks(stream.text, self.block, self.blocks, with_means=self.coarse)
        yield from self.core(at, d_model, scores, values)
        yield from self.output(at, d_model, stream.rows, bias=self.out_bias)
