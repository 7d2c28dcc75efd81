"""Blocks that see themselves, and rows beside the text that see all (Pegasus-X, arXiv 2208.04347)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.attention.several_heads import SeveralHeads
from costcalc.architecture.component import Flag, PositiveFloat, Size
from costcalc.architecture.places import At, Stream
from costcalc.inventory import BlocksAndMore, Record, StaggeredRows


class GlobalLocal(SeveralHeads):
    """`heads` heads; tokens of a block of `block` see one another and the stack's `global_tokens`, which see all.

    head_dim: None means d_model / heads. bias: on queries, keys and values, out_bias: on the output projection.
    staggered: the blocks begin half a block earlier, as in every second layer. scale: what scores are multiplied by,
    None for 1 / sqrt(head_dim); it changes no count.
    """

    kind: Literal["global_local"] = "global_local"
    bias: Flag = False
    out_bias: Flag = False
    block: Size
    staggered: Flag = False
    scale: PositiveFloat | None = None

    def summary(self, d_model: int) -> str:
        """One line for a reader."""
        return self.said(d_model, f"{'staggered ' if self.staggered else ''}blocks of {self.block:,}")

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Projections, pairs of blocks and of all with the rows beside them, the output."""
        rows = StaggeredRows(stream.text, self.block) if self.staggered else stream.rows
        yield from self.projections(at, d_model, rows, rows, bias=self.bias)
        pairs = BlocksAndMore(stream.text, self.block, self.staggered)
        yield from self.core(at, d_model, pairs, pairs)
        yield from self.output(at, d_model, rows, bias=self.out_bias)
