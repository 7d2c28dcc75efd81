"""Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): what is cached is one latent for all heads.

Keys and values are products of a latent of `kv_rank` numbers, beside which `rope_dim` rotated ones are shared by all
heads. Both ways to compute the same are stated: "expanded" makes keys and values of all latents that are seen, which
is cheaper in a prefill; "absorbed" multiplies queries and outputs instead, so that heads look at latents themselves,
which is cheaper for few new tokens (appendix C).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from costcalc.architecture.component import Component, Flag, PositiveFloat, Rule, Size
from costcalc.architecture.feed_forward.activation import Activation
from costcalc.architecture.norm import Norm, RMSNorm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Extent, Record


class Latent(Component):
    """`heads` heads, each of nope_dim + rope_dim numbers for scores and v_dim for values.

    kv_rank: numbers of the latent that is cached, beside the rope_dim that are rotated. q_rank: of a latent that
    queries are made of; None where they are made of the input. bias: on the matrices that make latents; out_bias: on
    the output projection. norm: of each latent. scale: what scores are multiplied by, None for
    1 / sqrt(nope_dim + rope_dim); softcap as in other attention; neither changes a count. output_gate: the heads'
    outputs are multiplied by gate_activation of another product of the input, one number "per_channel" or "per_head".
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
    window: ClassVar[None] = None
    chunk: ClassVar[None] = None
    cache_of: ClassVar[None] = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Rotation takes pairs."""
        yield self.rope_dim % 2 == 0, "rope_dim {rope_dim} is odd: RoPE rotates pairs", "write an even `rope_dim`"
        is_gated = self.output_gate is not None or self.gate_activation == "sigmoid"
        yield is_gated, "`gate_activation` belongs to an `output_gate`"

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
        return f"latent: {self.heads} heads of {sizes}, cached as {self.kv_rank:,} + {self.rope_dim}{queries}{gated}"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Queries; the latent, its norm and the two matrices that expand it; both forms of the core; the cache."""
        width, queries = {"D": d_model}, {"N": self.heads, "H_qk": self.qk_dim}
        if self.q_rank is None:
            yield from at.linear("q", stream.rows, width, queries, bias=False)
        else:
            yield from at.linear("q_down", stream.rows, width, {"R_q": self.q_rank}, bias=self.bias)
            yield from self.norm.records(at, "q_norm", {"R_q": self.q_rank})
            yield from at.linear("q_up", stream.rows, {"R_q": self.q_rank}, queries, bias=False)
        held = {"R_held": self.kv_rank + self.rope_dim}
        yield from at.linear("kv_down", stream.key_rows, width, held, bias=self.bias)
        yield from self.norm.records(at, "kv_norm", {"R": self.kv_rank})
        k_up = {"R": self.kv_rank, "N": self.heads, "H_nope": self.nope_dim}
        v_up = {"R": self.kv_rank, "N": self.heads, "H_v": self.v_dim}
        yield at.weight("k_up", k_up)
        yield at.weight("v_up", v_up)
        rows, seen, pairs = stream.rows, stream.seen, stream.pairs(None, None)
        each: dict[str, int | Extent] = {pairs.letters: pairs, "N": self.heads}
        for form, products, scored, mixed in (
            ("expanded", seen, {"H_qk": self.qk_dim}, {"H_v": self.v_dim}),
            ("absorbed", rows, held, {"R": self.kv_rank}),
        ):
            yield at.product("k_up", {products.letters: products, **k_up}, form=form)
            yield at.core("scores", {**each, **scored}, form=form)
            yield at.core("values", {**each, **mixed}, form=form)
            yield at.product("v_up", {products.letters: products, **v_up}, form=form)
        if stream.held is not None:
            tokens = stream.held(None, None)
            kept: dict[str, int | Extent] = {tokens.letters: tokens}
            yield at.cached("latent_cache", {**kept, **held}, kind=stream.cache, form="latent")
            keys, values = {"N": self.heads, "H_qk": self.qk_dim}, {"N": self.heads, "H_v": self.v_dim}
            yield at.cached("k_cache", {**kept, **keys}, kind=stream.cache, form="decompressed")
            yield at.cached("v_cache", {**kept, **values}, kind=stream.cache, form="decompressed")
        if self.output_gate is not None:
            gates = {"N": self.heads, "H_v": self.v_dim} if self.output_gate == "per_channel" else {"N": self.heads}
            yield from at.linear("gate", stream.rows, width, gates, bias=False)
        yield from at.linear("output", stream.rows, {"N": self.heads, "H_v": self.v_dim}, width, bias=self.out_bias)
