"""Dynamic mask attention (Doge, arXiv 2412.11834; `DogeAttention`): values say how much their keys are worth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from costcalc.architecture.component import Component, Flag, PositiveFloat, Rule, Size
from costcalc.architecture.norm import Norm, RMSNorm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import BlockPairs, Record
from costcalc.units import several


class DynamicMask(Component):
    """`heads` query heads on `kv_heads` key/value heads of `head_dim`; each query meets the `keys` best keys of a head.

    One product of a token's values, K·H -> K, gives its worth to each key head, which is added to all scores with its
    key; beyond `keys` visible tokens, those of least worth are left out. Nothing of it is held: the values of all
    tokens go through it in every pass. Which keys are left out is not known, but how many are.

    bias: on q, k, v, the worth and the output. norm: of each query head and of each key head, with a gain for each.
    scale: what scores are multiplied by, None for 1 / sqrt(head_dim); it changes no count.
    """

    kind: Literal["dynamic_mask"] = "dynamic_mask"
    heads: Size
    kv_heads: Size
    head_dim: Size
    keys: Size = 2048
    bias: Flag = False
    norm: Norm = RMSNorm()
    scale: PositiveFloat | None = None
    window: ClassVar[None] = None
    chunk: ClassVar[None] = None
    cache_of: ClassVar[None] = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Heads divide evenly among key/value heads."""
        hint = "change one of the two"
        yield self.heads % self.kv_heads == 0, "heads {heads} is not a multiple of kv_heads {kv_heads}", hint

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
        heads = f"{several(self.heads, 'query head')} on {several(self.kv_heads, 'key/value head')} of {self.head_dim}"
        return f"{heads}, the best {self.keys:,} keys{', biases' if self.bias else ''}"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Projections, norms, the worth of all values, scores and values over chosen pairs, the cache, the output."""
        width, queries = {"D": d_model}, {"N": self.heads, "H": self.head_dim}
        shared = {"K": self.kv_heads, "H": self.head_dim}
        for name, made in (("q", queries), ("k", shared), ("v", shared)):
            yield from at.linear(name, stream.rows, width, made, bias=self.bias)
        for name in ("q_norm", "k_norm"):
            yield from self.norm.records(at, name, {"H": self.head_dim})
        yield from at.linear("worth", stream.seen, shared, {"K_worth": self.kv_heads}, bias=self.bias)
        yield at.weight("worth_gain", {"K": self.kv_heads})
        pairs = BlockPairs(1, self.keys)
        yield at.core("scores", {pairs.letters: pairs, **queries})
        yield at.core("values", {pairs.letters: pairs, **queries})
        if stream.held is not None:
            held = stream.held(None, None)
            for name in ("k_cache", "v_cache"):
                yield at.cached(name, {held.letters: held, **shared}, kind=stream.cache)
        yield from at.linear("output", stream.rows, queries, width, bias=self.bias)
