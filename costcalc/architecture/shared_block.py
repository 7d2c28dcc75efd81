"""A transformer block that several layers share (Zamba, arXiv 2405.16712; Zamba-2, arXiv 2411.15242)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from costcalc.architecture.attention import GroupedQuery
from costcalc.architecture.component import Component, Name, Rule, Size, Where
from costcalc.architecture.feed_forward import Dense, Gated
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record

Network = Annotated[Dense | Gated, Field(discriminator="kind")]


class SharedBlock(Component):
    """Attention and a network of one set of weights, that read a layer's input joined with the embeddings.

    weights: the name of that set of weights; equal layers with one name share it (Zamba-2 alternates two). Each layer
    has its own cache, its own projection (`linear`) of what comes out, which its mixer reads beside the residual
    stream, and its own adapters: products of a low rank that are added to queries, keys and values
    (attention_adapter_rank), and to the network's two first matrices (feed_forward_adapter_rank).
    """

    weights: Name = "shared"
    attention: GroupedQuery
    feed_forward: Network
    attention_adapter_rank: Size | None = None
    feed_forward_adapter_rank: Size | None = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Nothing that the block's own cache does not have; adapters that give what they are added to."""
        attention = self.attention
        kv_heads, head_dim = attention.sizes(d_model)
        plain = attention.window is None and attention.chunk is None and attention.cache_of is None
        yield plain, "a shared attention has no `window`, `chunk` or `cache_of`", "take it out"
        same = attention.heads * head_dim == 2 * d_model and kv_heads == attention.heads
        yield (
            self.attention_adapter_rank is None or (same and attention.v_dim in (None, head_dim)),
            "`attention_adapter_rank` is for queries, keys and values of 2 x d_model numbers each",
            f"write heads and head_dim of {2 * d_model} together, and as many kv_heads",
        )
        yield (
            self.feed_forward_adapter_rank is None or isinstance(self.feed_forward, Gated),
            "`feed_forward_adapter_rank` is for a gated network",
            "write `feed_forward: {kind: gated, d_ff: ...}`, or take it out",
        )

    def check(self, where: Where, d_model: int) -> None:
        """The rules of its parts, then its own."""
        self.attention.check((*where, "attention"), d_model)
        self.feed_forward.check((*where, "feed_forward"), d_model)
        super().check(where, d_model)

    def summary(self, d_model: int) -> str:
        """One line for a reader."""
        ranks = {"attention": self.attention_adapter_rank, "network": self.feed_forward_adapter_rank}
        adapters = "".join(f", adapters of rank {rank:,} on the {on}" for on, rank in ranks.items() if rank)
        return f"{self.attention.summary(d_model)}; {self.feed_forward.summary()}{adapters}"

    def records(self, at: At, d_model: int, stream: Stream, norm: Norm) -> Iterator[Record]:
        """2D -> heads and -> D, D -> F -> D, once for all layers; then what each layer has of its own."""
        here = at.under("shared_block")
        shared, width, joined = replace(here, shared=True), {"D": d_model}, {"joined": 2 * d_model}
        yield from norm.records(shared, "attention_norm", joined)
        yield from self.attention.records(shared.under("attention"), d_model, stream, inputs=joined)
        yield from norm.records(shared, "feed_forward_norm", width)
        yield from self.feed_forward.records(shared.under("feed_forward"), d_model, stream)
        own, rows = here.under("adapters"), stream.rows
        if self.attention_adapter_rank is not None:
            rank = {"rank": self.attention_adapter_rank}
            for name in ("q", "k", "v"):
                yield from own.linear(f"{name}_down", rows, joined, rank, bias=False)
                yield from own.linear(f"{name}_up", rows, rank, joined, bias=False)
        if self.feed_forward_adapter_rank is not None:
            rank, both = {"rank": self.feed_forward_adapter_rank}, {"entered": 2 * self.feed_forward.d_ff}
            yield from own.linear("gate_up_down", rows, width, rank, bias=False)
            yield from own.linear("gate_up_up", rows, rank, both, bias=False)
        yield from here.linear("linear", rows, width, {"D_out": d_model}, bias=False)
