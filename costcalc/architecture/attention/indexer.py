"""The lightning indexer of DeepSeek sparse attention (DeepSeek-V3.2, arXiv 2512.02556, section 2.1): which keys a query
meets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.component import Component, Size
from costcalc.architecture.norm import LayerNorm, Norm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record


class Indexer(Component):
    """`heads` small query heads on one key of `head_dim` numbers a token, which is cached.

    A key's score is the sum, over heads, of relu(query · key) times a weight that is made of the asking token's input.
    Queries are made of the latent that the attention's queries are made of. All keys that may be seen are scored,
    whatever is then chosen.

    norm: of the keys. rotates: which numbers of a head are rotated, as many as of the attention's: the "first" or, in
    Hy4, the "last"; it changes no count.
    """

    heads: Size
    head_dim: Size
    norm: Norm = LayerNorm(eps=1e-6)
    rotates: Literal["first", "last"] = "first"

    def records(self, at: At, d_model: int, stream: Stream, *, q_rank: int) -> Iterator[Record]:
        """R_q -> N_index·H_index, D -> H_index and D -> N_index; a score of each pair and head, and their sums."""
        of_head, width = {"H_index": self.head_dim}, {"D": d_model}
        asked, weights = {"N_index": self.heads, **of_head}, {"N_index": self.heads}
        yield from at.linear("q", stream.rows, {"R_q": q_rank}, asked, bias=False)
        yield from at.linear("k", stream.key_rows, width, of_head, bias=False)
        yield from self.norm.records(at, "k_norm", of_head)
        yield from at.linear("weights", stream.rows, width, weights, bias=False)
        pairs = stream.pairs(None, None)
        yield at.core("scores", {pairs.letters: pairs, **asked})
        yield at.core("values", {pairs.letters: pairs, **weights})
        if stream.held is not None:
            held = stream.held(None, None)
            yield at.cached("k_cache", {held.letters: held, **of_head}, kind=stream.cache)
