"""Scaled dot-product attention with grouped key/value heads (arXiv 1706.03762 and 2305.13245).

kv_heads = heads is multi-head, 1 is multi-query (arXiv 1911.02150), anything between is grouped-query.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from costcalc.architecture.component import Component, Flag, PositiveFloat, Rule, Size
from costcalc.architecture.norm import Norm, RMSNorm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Extent, Record


class PerHeadNorm(Component):
    """QK-norm over each head's H numbers, one gain for all heads (Qwen3, Gemma-3)."""

    kind: Literal["per_head"] = "per_head"
    norm: Norm = RMSNorm()

    def records(self, at: At, *, heads: dict[str, int], head_dim: int) -> Iterator[Record]:
        """A norm of H for the queries and one for the keys."""
        for name in heads:
            yield from self.norm.records(at, f"{name}_norm", {"H": head_dim})


class ProjectionNorm(Component):
    """QK-norm over the whole projection, N x H numbers for queries and K x H for keys (OLMo-2)."""

    kind: Literal["projection"] = "projection"
    norm: Norm = RMSNorm()

    def records(self, at: At, *, heads: dict[str, int], head_dim: int) -> Iterator[Record]:
        """A norm of N x H for the queries and one of K x H for the keys."""
        for (name, count), letter in zip(heads.items(), "NK", strict=True):
            yield from self.norm.records(at, f"{name}_norm", {letter: count, "H": head_dim})


QKNorm = Annotated[PerHeadNorm | ProjectionNorm, Field(discriminator="kind")]


class GroupedQuery(Component):
    """`heads` query heads that share `kv_heads` key/value heads, each of `head_dim`.

    kv_heads: None means as many as heads. head_dim: None means d_model / heads. bias: on q, k and v; out_bias: on the
    output projection. window: each query sees the latest `window` keys, itself included, or in an encoder itself and
    `window // 2` keys to either side; None sees all. scale: what scores are multiplied by, None for 1 / sqrt(head_dim).
    softcap: scores become softcap * tanh(scores / softcap) (Gemma-2, arXiv 2408.00118). Neither changes a count; the
    forward pass needs them.
    """

    kind: Literal["grouped_query"] = "grouped_query"
    heads: Size
    kv_heads: Size | None = None
    head_dim: Size | None = None
    bias: Flag = False
    out_bias: Flag = False
    qk_norm: QKNorm | None = None
    window: Size | None = None
    scale: PositiveFloat | None = None
    softcap: PositiveFloat | None = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Heads divide evenly among key/value heads, and the model's width among heads unless head_dim is given."""
        if self.kv_heads is not None:
            yield self.heads % self.kv_heads == 0, "heads {heads} is not a multiple of kv_heads {kv_heads}"
        if self.head_dim is None:
            yield (
                d_model % self.heads == 0,
                "d_model {d_model} is not a multiple of heads {heads}, and no head_dim is given",
            )

    def sizes(self, d_model: int) -> tuple[int, int]:
        """(kv_heads, head_dim), derived where they were not written."""
        kv_heads = self.heads if self.kv_heads is None else self.kv_heads
        return kv_heads, d_model // self.heads if self.head_dim is None else self.head_dim

    def left_out(self, d_model: int) -> dict[str, tuple[Any, str]]:
        """Key/value heads, head size where it divides, and the scale of scores."""
        _, head_dim = self.sizes(d_model)
        divides = {"head_dim": (d_model // self.heads, "d_model / heads")} if d_model % self.heads == 0 else {}
        return {"kv_heads": (self.heads, "heads"), **divides, "scale": (head_dim**-0.5, "1 / sqrt(head_dim)")}

    def derived(self, d_model: int) -> Iterator[str]:
        """Head size and key/value heads, where they were not written."""
        kv_heads, head_dim = self.sizes(d_model)
        if self.head_dim is None:
            yield f"head_dim = d_model / heads = {d_model:,} / {self.heads} = {head_dim}"
        if self.kv_heads is None:
            yield f"kv_heads = heads = {kv_heads} (multi-head attention)"

    def summary(self, d_model: int) -> str:
        """One line for a reader: heads, head size, and what differs from the plain kind."""
        kv_heads, head_dim = self.sizes(d_model)
        parts = [f"{self.heads} query heads on {kv_heads} key/value heads of {head_dim}"]
        if self.window is not None:
            parts.append(f"window {self.window:,}")
        if self.qk_norm is not None:
            parts.append(f"QK-norm {self.qk_norm.kind}")
        if self.bias or self.out_bias:
            parts.append("biases on " + " and ".join(["q, k, v"] * self.bias + ["output"] * self.out_bias))
        return ", ".join(parts)

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Projections D -> N·H, D -> K·H (twice) and N·H -> D; scores and weighted values over the pairs; the cache.

        Scores and values are counted for all N query heads: sharing keys shrinks the cache, not the core.
        """
        kv_heads, head_dim = self.sizes(d_model)
        width, queries, keys = {"D": d_model}, {"N": self.heads, "H": head_dim}, {"K": kv_heads, "H": head_dim}
        yield from at.linear("q", stream.rows, width, queries, bias=self.bias)
        yield from at.linear("k", stream.key_rows, width, keys, bias=self.bias)
        yield from at.linear("v", stream.key_rows, width, keys, bias=self.bias)
        if self.qk_norm is not None:
            yield from self.qk_norm.records(at, heads={"q": self.heads, "k": kv_heads}, head_dim=head_dim)
        pairs = stream.pairs(self.window)
        core: dict[str, int | Extent] = {pairs.letters: pairs, **queries}
        yield at.core("scores", core)
        yield at.core("values", core)
        if stream.held is not None:
            held = stream.held(self.window)
            yield at.cached("k_cache", {held.letters: held, **keys}, kind=stream.cache)
            yield at.cached("v_cache", {held.letters: held, **keys}, kind=stream.cache)
        yield from at.linear("output", stream.rows, queries, width, bias=self.out_bias)
