"""Blocks that meet their neighbours, the first and last block, and a few drawn ones (BigBird, arXiv 2007.14062)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.attention.several_heads import SeveralHeads
from costcalc.architecture.component import Flag, PositiveFloat, Size, Whole
from costcalc.architecture.places import At, Stream
from costcalc.inventory import BlockSparsePairs, Record
from costcalc.units import several


class BlockSparse(SeveralHeads):
    """`heads` heads; blocks of `block` tokens see themselves, those beside them, the first and the last, and `random`.

    head_dim: None means d_model / heads. bias: on queries, keys and values, out_bias: on the output projection. random:
    how many more blocks each one sees, of those that it does not see anyway. The first and the last block see all. A
    text of at most (5 + 2 x random) blocks has all pairs. scale: what scores are multiplied by, None for
    1 / sqrt(head_dim); it changes no count.
    """

    kind: Literal["block_sparse"] = "block_sparse"
    bias: Flag = True
    out_bias: Flag = True
    block: Size
    random: Whole = 3
    scale: PositiveFloat | None = None

    def summary(self, d_model: int) -> str:
        """One line for a reader."""
        return self.said(d_model, f"blocks of {self.block:,} with 5 and {several(self.random, 'drawn block')}")

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Projections, the pairs of blocks, the output."""
        yield from self.projections(at, d_model, stream.rows, stream.rows, bias=self.bias)
        pairs = BlockSparsePairs(stream.text, self.block, self.random)
        yield from self.core(at, d_model, pairs, pairs)
        yield from self.output(at, d_model, stream.rows, bias=self.out_bias)
