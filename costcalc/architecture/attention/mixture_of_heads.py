"""A mixture of attention heads (arXiv 2210.05144): experts make queries and outputs; all share keys and values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from costcalc.architecture.component import Component, Flag, PositiveFloat, Rule, Size
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record
from costcalc.units import several


class MixtureOfHeads(Component):
    """`heads` query heads of a token: `kv_heads` from each of the experts that it uses, one for each key/value head.

    A router chooses heads / kv_heads of `experts` for a token. An expert has a product D -> kv_heads·head_dim for
    queries, and one back for what they gather, which the router's softmax over the chosen weighs (JetMoE, arXiv
    2404.07413). Keys and values are those of all experts.

    out_bias: D numbers that are added to the sum. window: each query sees the latest `window` keys, itself included;
    None sees all. scale: what scores are multiplied by, None for 1 / sqrt(head_dim); it changes no count.
    """

    kind: Literal["mixture_of_heads"] = "mixture_of_heads"
    heads: Size
    kv_heads: Size
    head_dim: Size
    experts: Size
    out_bias: Flag = False
    window: Size | None = None
    scale: PositiveFloat | None = None
    chunk: ClassVar[None] = None
    cache_of: ClassVar[None] = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Heads are whole experts, and no more than there are."""
        yield (
            self.heads % self.kv_heads == 0,
            "heads {heads} is not a multiple of kv_heads {kv_heads}: an expert has one for each",
            "change one of the two",
        )
        yield (
            self.heads <= self.experts * self.kv_heads,
            "{heads} heads, but {experts} experts of {kv_heads} heads each have no more to choose",
            "write fewer `heads`, or more `experts`",
        )

    def rotated(self, d_model: int) -> int:
        """Numbers of a head that rotary positions turn."""
        del d_model
        return self.head_dim

    def left_out(self, d_model: int) -> dict[str, tuple[Any, str]]:
        """The scale of scores."""
        return {"scale": (self.head_dim**-0.5, "1 / sqrt(head_dim)")}

    def summary(self, d_model: int) -> str:
        """One line for a reader."""
        del d_model
        window = "" if self.window is None else f", window {self.window:,}"
        shared = several(self.kv_heads, "key/value head")
        return f"{self.heads // self.kv_heads} of {self.experts} experts of {shared} of {self.head_dim}{window}"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """D -> E, queries of the chosen experts, keys and values of all, scores and values, outputs of the chosen."""
        width, shared = {"D": d_model}, {"K": self.kv_heads, "H": self.head_dim}
        chosen = self.heads // self.kv_heads
        there, routed = at.of_experts("experts", self.experts, chosen=chosen), stream.routed(chosen, None)
        yield from at.linear("router", stream.rows, width, {"E": self.experts}, bias=False)
        yield from there.linear("q", routed.rows, width, shared, bias=False)
        for name in ("k", "v"):
            yield from at.linear(name, stream.key_rows, width, shared, bias=False)
        pairs, queries = stream.pairs(self.window, None), {"N": self.heads, "H": self.head_dim}
        yield at.core("scores", {pairs.letters: pairs, **queries})
        yield at.core("values", {pairs.letters: pairs, **queries})
        if stream.held is not None:
            held = stream.held(self.window, None)
            for name in ("k_cache", "v_cache"):
                yield at.cached(name, {held.letters: held, **shared}, kind=stream.cache)
        yield from there.linear("output", routed.rows, shared, width, bias=False)
        if self.out_bias:
            yield at.weight("output_bias", width)
