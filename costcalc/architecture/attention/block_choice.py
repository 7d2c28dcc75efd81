"""A choice of blocks of keys (MiniMax-M3's lightning indexer, `MiniMaxM3VLIndexer`): an attention beside the attention,
whose only result is which blocks each query meets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from costcalc.architecture.component import Component, Size
from costcalc.architecture.norm import Norm, RMSNorm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import BlockPairs, Record
from costcalc.units import several


class BlockChoice(Component):
    """`heads` queries of `head_dim` numbers score one key of each token; a block is as good as its best token.

    Each query meets `blocks` blocks of `block` keys, those of the latest `local` always among them, its own first;
    no later key. Of N query heads, N / heads beside each other meet what one head here has chosen. norm: of these
    queries and of these keys, each with a gain of its own. The keys are held, beside those of the attention.
    """

    heads: Size
    head_dim: Size
    block: Size = 128
    blocks: Size = 16
    local: Size = 1
    norm: Norm = RMSNorm()

    def summary(self) -> str:
        """Part of the line of an attention."""
        scored = f"{several(self.heads, 'head')} of {self.head_dim}"
        return f"{self.blocks} blocks of {self.block} keys, chosen by {scored}"

    def pairs(self) -> BlockPairs:
        """What the attention meets."""
        return BlockPairs(self.block, self.blocks)

    def records(self, at: At, width: Mapping[str, int], stream: Stream) -> Iterator[Record]:
        """D -> N_i·H_i and D -> H_i, their norms, the scores of all keys up to a query, and held keys."""
        of_head = {"H_index": self.head_dim}
        queries = {"N_index": self.heads, **of_head}
        yield from at.linear("q", stream.rows, width, queries, bias=False)
        yield from at.linear("k", stream.key_rows, width, of_head, bias=False)
        yield from self.norm.records(at, "q_norm", of_head)
        yield from self.norm.records(at, "k_norm", of_head)
        pairs = stream.pairs(None, None)
        yield at.core("scores", {pairs.letters: pairs, **queries})
        if stream.held is not None:
            held = stream.held(None, None)
            yield at.cached("k_cache", {held.letters: held, **of_head}, kind=stream.cache)
