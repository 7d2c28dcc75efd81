"""Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): what is cached is one latent for all heads.

Keys and values are products of a latent of `kv_rank` numbers, beside which `rope_dim` rotated ones are shared by all
heads. Both ways to compute the same are stated: "expanded" makes keys and values of all latents that are seen, which
is cheaper in a prefill; "absorbed" multiplies queries and outputs instead, so that heads look at latents themselves,
which is cheaper for few new tokens (appendix C).

With `top_k` a query meets no more than so many keys (DeepSeek-V3.2, arXiv 2512.02556, section 2.1): `indexer.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from costcalc.architecture.attention.indexer import Indexer
from costcalc.architecture.component import Component, Flag, PositiveFloat, Rule, Size
from costcalc.architecture.feed_forward.activation import Activation
from costcalc.architecture.norm import Norm, RMSNorm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Extent, Record
from costcalc.units import several


class Latent(Component):
    """`heads` heads, each of nope_dim + rope_dim numbers for scores and v_dim for values.

    kv_rank: numbers of the latent that is cached, beside the rope_dim that are rotated. q_rank: of a latent that
    queries are made of; None where they are made of the input. bias: on the matrices that make latents; out_bias: on
    the output projection. norm: of each latent. scale: what scores are multiplied by, None for
    1 / sqrt(nope_dim + rope_dim); softcap as in other attention; neither changes a count. output_gate: the heads'
    outputs are multiplied by gate_activation of another product of the input, one number "per_channel" or "per_head".

    top_k: each query meets at most so many keys, those that an `indexer` scores highest, or where there is none here,
    those that the nearest earlier layer with one chose (GLM-5.2). Kernels that mask the others are handed all keys:
    that counts under counting="rectangle". query_reads: the "normed" latent, or "both", that and the one before its
    norm; gate_reads: the "input", or the same "query_latent" (A.X-K2). sinks: a learned number for each head takes part
    in its softmax, and gets weight that goes to no value (Hy4). latent_scale: what the latent of keys and values is
    multiplied by, behind its norm (LongCat-Flash); it changes no count. window: each query sees the latest `window`
    keys, itself included, and no more latents are held. rope_norm: one more norm, of a key's rotated numbers, before
    they turn (dots.3 note).
    """

    kind: Literal["latent"] = "latent"
    heads: Size
    q_rank: Size | None = None
    kv_rank: Size
    nope_dim: Size
    rope_dim: Size
    v_dim: Size
    bias: Flag = False
    out_bias: Flag = False
    norm: Norm = RMSNorm()
    scale: PositiveFloat | None = None
    softcap: PositiveFloat | None = None
    output_gate: Literal["per_channel", "per_head"] | None = None
    gate_activation: Activation = "sigmoid"
    top_k: Size | None = None
    indexer: Indexer | None = None
    query_reads: Literal["normed", "both"] = "normed"
    gate_reads: Literal["input", "query_latent"] = "input"
    sinks: Flag = False
    latent_scale: PositiveFloat = 1.0
    window: Size | None = None
    rope_norm: Flag = False
    chunk: ClassVar[None] = None
    cache_of: ClassVar[None] = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Rotation takes pairs; an indexer chooses; what is made of the latent of queries needs one."""
        yield self.rope_dim % 2 == 0, "rope_dim {rope_dim} is odd: RoPE rotates pairs", "write an even `rope_dim`"
        is_gated = self.output_gate is not None or self.gate_activation == "sigmoid"
        yield is_gated, "`gate_activation` belongs to an `output_gate`"
        reads_input = self.gate_reads == "input"
        is_read = reads_input or self.output_gate is not None
        yield is_read, "`gate_reads` belongs to an `output_gate`", "write one, or take it out"
        for key, plain in (
            ("indexer", self.indexer is None),
            ("query_reads: both", self.query_reads == "normed"),
            ("gate_reads: query_latent", reads_input),
        ):
            has_latent = plain or self.q_rank is not None
            yield has_latent, f"`{key}` reads the latent of queries, and there is none", "write a `q_rank`"
        is_one = self.window is None or self.top_k is None
        yield is_one, "`window` and `top_k` exclude each other", "take one of the two out"
        if self.indexer is not None:
            of_head = f"of an indexer's head of {self.indexer.head_dim} numbers rope_dim {{rope_dim}} are rotated"
            yield self.top_k is not None, "an `indexer` chooses `top_k` keys", "write `top_k: 2048`"
            yield self.rope_dim <= self.indexer.head_dim, f"{of_head}: no more are there", "change one of the two"

    @property
    def qk_dim(self) -> int:
        """Numbers of a head that scores are made of."""
        return self.nope_dim + self.rope_dim

    def rotated(self, d_model: int) -> int:
        """Numbers of a head that rotary positions turn."""
        del d_model
        return self.rope_dim

    def left_out(self, d_model: int) -> dict[str, tuple[Any, str]]:
        """The scale of scores."""
        return {"scale": (self.qk_dim**-0.5, "1 / sqrt(nope_dim + rope_dim)")}

    def summary(self, d_model: int) -> str:
        """One line for a reader."""
        del d_model
        queries = "" if self.q_rank is None else f", queries of a latent of {self.q_rank:,}"
        gated = "" if self.output_gate is None else f", output gate {self.output_gate.replace('_', ' ')}"
        sizes = f"{self.nope_dim} + {self.rope_dim} numbers, values of {self.v_dim}"
        sinks = ", sinks" * self.sinks + ("" if self.window is None else f", window {self.window:,}")
        some = "" if self.top_k is None else f", {self.top_k:,} keys a query, {self._chosen_by()}"
        held = f"cached as {self.kv_rank:,} + {self.rope_dim}"
        return f"latent: {self.heads} heads of {sizes}, {held}{queries}{gated}{sinks}{some}"

    def _chosen_by(self) -> str:
        if self.indexer is None:
            return "those of an earlier layer"
        return f"chosen by {several(self.indexer.heads, 'head')} of {self.indexer.head_dim} numbers"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Queries; the latent, its norm and the two matrices that expand it; both forms of the core; the cache."""
        width = {"D": d_model}
        yield from self._queries(at, d_model, stream)
        held = {"R_held": self.kv_rank + self.rope_dim}
        yield from at.linear("kv_down", stream.key_rows, width, held, bias=self.bias)
        yield from self.norm.records(at, "kv_norm", {"R": self.kv_rank})
        if self.rope_norm:
            yield from self.norm.records(at, "rope_norm", {"H_rope": self.rope_dim})
        if self.indexer is not None and self.q_rank is not None:
            yield from self.indexer.records(at.under("indexer"), d_model, stream, q_rank=self.q_rank)
        if self.sinks:
            yield at.weight("sinks", {"N": self.heads})
        yield from self._core(at, stream, held)
        yield from self._cache(at, stream, held)
        if self.output_gate is not None:
            gates = {"N": self.heads, "H_v": self.v_dim} if self.output_gate == "per_channel" else {"N": self.heads}
            read = width if self.gate_reads == "input" else self._asked()
            yield from at.linear("gate", stream.rows, read, gates, bias=False)
        yield from at.linear("output", stream.rows, {"N": self.heads, "H_v": self.v_dim}, width, bias=self.out_bias)

    def _asked(self) -> dict[str, int]:
        """The numbers that queries are made of: of the normed latent, or of that twice, as it was and normed."""
        rank = self.q_rank or 0
        return {"R_q": rank} if self.query_reads == "normed" else {"R_q_both": 2 * rank}

    def _queries(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Of the input, or of a latent of it."""
        width, queries = {"D": d_model}, {"N": self.heads, "H_qk": self.qk_dim}
        if self.q_rank is None:
            yield from at.linear("q", stream.rows, width, queries, bias=False)
            return
        yield from at.linear("q_down", stream.rows, width, {"R_q": self.q_rank}, bias=self.bias)
        yield from self.norm.records(at, "q_norm", {"R_q": self.q_rank})
        yield from at.linear("q_up", stream.rows, self._asked(), queries, bias=False)

    def _core(self, at: At, stream: Stream, held: dict[str, int]) -> Iterator[Record]:
        """The matrices of keys and values, and scores and values in both forms."""
        k_up = {"R": self.kv_rank, "N": self.heads, "H_nope": self.nope_dim}
        v_up = {"R": self.kv_rank, "N": self.heads, "H_v": self.v_dim}
        yield at.weight("k_up", k_up)
        yield at.weight("v_up", v_up)
        rows, seen = stream.rows, stream.reached(self.window)
        pairs = stream.pairs(self.window, None) if self.top_k is None else stream.chosen(self.top_k)
        each: dict[str, int | Extent] = {pairs.letters: pairs, "N": self.heads}
        for form, products, scored, mixed in (
            ("expanded", seen, {"H_qk": self.qk_dim}, {"H_v": self.v_dim}),
            ("absorbed", rows, held, {"R": self.kv_rank}),
        ):
            yield at.product("k_up", {products.letters: products, **k_up}, form=form)
            yield at.core("scores", {**each, **scored}, form=form)
            yield at.core("values", {**each, **mixed}, form=form)
            yield at.product("v_up", {products.letters: products, **v_up}, form=form)

    def _cache(self, at: At, stream: Stream, held: dict[str, int]) -> Iterator[Record]:
        """One latent a token, or in its place keys and values of all heads."""
        if stream.held is None:
            return
        tokens = stream.held(self.window, None)
        kept: dict[str, int | Extent] = {tokens.letters: tokens}
        yield at.cached("latent_cache", {**kept, **held}, kind=stream.cache, form="latent")
        keys, values = {"N": self.heads, "H_qk": self.qk_dim}, {"N": self.heads, "H_v": self.v_dim}
        yield at.cached("k_cache", {**kept, **keys}, kind=stream.cache, form="decompressed")
        yield at.cached("v_cache", {**kept, **values}, kind=stream.cache, form="decompressed")
