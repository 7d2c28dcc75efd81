"""Entries that stand for many tokens (DeepSeek-V4: heavily compressed attention, and compressed sparse attention)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from costcalc.architecture.component import Component, Flag, Size
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Entries, EntryPairs, Overlapping, Record, Waiting
from costcalc.units import several


class EntryChoice(Component):
    """`heads` queries of `head_dim` score entries of their own, so wide; the best `entries` are met, of those before.

    The queries are made of the latent that the attention's are made of. A score is a sum over heads, each of which has
    a weight that is made of the asking token.
    """

    heads: Size
    head_dim: Size
    entries: Size


class Compression(Component):
    """Every `rate` tokens become one entry: of each of its numbers a mean, weighed by a softmax over the tokens.

    Weights are products of the tokens, and of what a learned table adds for each place. overlap: tokens have two
    series of both, and an entry is made of its own tokens' second and the first of those before them. choice: a query
    meets some of the entries before it, which entries of another width choose; None for all of them.
    """

    rate: Size
    overlap: Flag = False
    choice: EntryChoice | None = None

    def summary(self) -> str:
        """Part of the line of an attention."""
        made = f"one entry for {self.rate:,} tokens" + ", of twice as many" * self.overlap
        if self.choice is None:
            return made
        scored = f"{several(self.choice.heads, 'head')} of {self.choice.head_dim}"
        return f"{made}, of which {self.choice.entries:,} are chosen by {scored}"

    def pairs(self) -> EntryPairs:
        """What the attention meets."""
        return EntryPairs(self.rate, None if self.choice is None else self.choice.entries)

    def records(
        self, at: At, d_model: int, stream: Stream, *, norm: Norm, head_dim: int, q_rank: int
    ) -> Iterator[Record]:
        """The attention's entries, and those of a choice with its queries, weights and scores."""
        yield from self._entries(at, d_model, stream, norm, {"H": head_dim})
        if self.choice is None:
            return
        there, heads = at.under("choice"), {"N_index": self.choice.heads}
        queries = {**heads, "H_index": self.choice.head_dim}
        yield from self._entries(there, d_model, stream, norm, {"H_index": self.choice.head_dim})
        yield from there.linear("q_up", stream.rows, {"R_q": q_rank}, queries, bias=False)
        yield from there.linear("head_weights", stream.rows, {"D": d_model}, heads, bias=False)
        pairs = EntryPairs(self.rate)
        yield there.core("scores", {pairs.letters: pairs, **queries})

    def _entries(
        self, at: At, d_model: int, stream: Stream, norm: Norm, numbers: Mapping[str, int]
    ) -> Iterator[Record]:
        """D -> one or two series of H, and as many weights; the table of places; entries, and what waits to be one."""
        each = {"series": 2, **numbers} if self.overlap else numbers
        for name in ("kv", "weights"):
            yield from at.linear(name, stream.rows, {"D": d_model}, each, bias=False)
        yield at.weight("places", {"rate": self.rate, **each})
        yield from norm.records(at, "norm", numbers)
        if stream.held is None:
            return
        entries, waiting, shared = Entries(self.rate), Waiting(self.rate), Overlapping(self.rate)
        yield at.cached("entries", {entries.letters: entries, **numbers}, kind=stream.cache)
        for name in ("kv", "weights"):
            yield at.cached(f"waiting_{name}", {waiting.letters: waiting, **each}, kind=stream.cache)
            if self.overlap:
                yield at.cached(f"overlapping_{name}", {shared.letters: shared, **numbers}, kind=stream.cache)
