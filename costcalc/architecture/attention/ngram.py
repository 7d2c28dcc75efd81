"""N-gram attention of a main stream and of streams that look ahead (ProphetNet, arXiv 2001.04063, section 3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from costcalc.architecture.component import Component, Flag, PositiveFloat, Rule, Size
from costcalc.architecture.places import At, Stream
from costcalc.inventory import AheadPairs, Asking, CrossPairs, Matmul, Record, Routed, Tokens
from costcalc.units import several

MOST_STREAMS = 100
ROW_BY_ROW = (Tokens, Asking, CrossPairs, Routed)
"""Extents of work that each stream of a token does."""


class NGram(Component):
    """`heads` of `head_dim`; beside the main stream of a text, `streams` of it that guess one, two, ... tokens ahead.

    All rows of all streams go through every layer. Stream j of a token sees the main stream up to j - 1 tokens before
    it (but the first one always) and itself; the main stream sees itself alone, and its keys and values are all that is
    kept. Scores are shifted by numbers of each row, a head and a bucket of distances, which a matrix of D x buckets·N
    makes.

    head_dim: None means d_model / heads. bias: on q, k, v and that matrix; out_bias: on the output. max_distance: from
    where on all distances are one bucket; scale: what scores are multiplied by, None for 1 / sqrt(head_dim). Neither
    changes a count.
    """

    kind: Literal["ngram"] = "ngram"
    heads: Size
    head_dim: Size | None = None
    streams: Size = 2
    buckets: Size = 32
    max_distance: Size = 128
    bias: Flag = False
    out_bias: Flag = False
    scale: PositiveFloat | None = None
    window: ClassVar[None] = None
    chunk: ClassVar[None] = None
    cache_of: ClassVar[None] = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Heads divide the width unless their size is given; few streams; buckets as in T5's relative positions."""
        yield (
            self.head_dim is not None or d_model % self.heads == 0,
            "d_model {d_model} is not a multiple of heads {heads}, and no head_dim is given",
        )
        yield self.streams <= MOST_STREAMS, f"{{streams}} streams are more than {MOST_STREAMS}", "write fewer"
        half = self.buckets // 2
        yield 1 <= half < self.max_distance, "half the {buckets} buckets is not from 1 to below {max_distance}"

    def rotated(self, d_model: int) -> int:
        """Numbers of a head that rotary positions would turn."""
        return self.size(d_model)

    def size(self, d_model: int) -> int:
        """Numbers of a head."""
        return d_model // self.heads if self.head_dim is None else self.head_dim

    def left_out(self, d_model: int) -> dict[str, tuple[Any, str]]:
        """Head size where it divides, and the scale of scores."""
        divides = {"head_dim": (d_model // self.heads, "d_model / heads")} if d_model % self.heads == 0 else {}
        return {**divides, "scale": (self.size(d_model) ** -0.5, "1 / sqrt(head_dim)")}

    def derived(self, d_model: int) -> Iterator[str]:
        """Head size, where it was not written."""
        if self.head_dim is None:
            yield f"head_dim = d_model / heads = {d_model:,} / {self.heads} = {self.size(d_model)}"

    def summary(self, d_model: int) -> str:
        """One line for a reader."""
        heads = f"{several(self.heads, 'head')} of {self.size(d_model)}"
        return f"{heads}, {several(self.streams, 'stream')} ahead, {self.buckets:,} buckets of distances"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Of one stream all that each does (`of_all` counts the others); scores and values of the main one and of the
        others; the cache of the main one.
        """
        width, heads = {"D": d_model}, {"N": self.heads, "H": self.size(d_model)}
        for name in ("q", "k", "v"):
            yield from at.linear(name, stream.rows, width, heads, bias=self.bias)
        of_distances = {"buckets": self.buckets, "N": self.heads}
        yield from at.linear("relative", stream.rows, width, of_distances, bias=self.bias)
        pairs, ahead = stream.pairs(None, None), AheadPairs(self.streams)
        for name in ("scores", "values"):
            yield at.core(name, {pairs.letters: pairs, **heads})
            yield at.under("ahead").core(name, {ahead.letters: ahead, **heads})
        if stream.held is not None:
            held = stream.held(None, None)
            for name in ("k_cache", "v_cache"):
                yield at.cached(name, {held.letters: held, "K": self.heads, "H": heads["H"]}, kind=stream.cache)
        yield from at.linear("output", stream.rows, heads, width, bias=self.out_bias)

    def of_all(self, record: Record) -> Record:
        """A product of one stream's rows as that of the rows of all."""
        if isinstance(record, Matmul) and any(isinstance(size, ROW_BY_ROW) for size in record.axes.values()):
            return record._replace(axes={**record.axes, "of_text": 1 + self.streams})
        return record
