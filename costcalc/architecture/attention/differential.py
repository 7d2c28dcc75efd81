"""Differential attention (arXiv 2410.05258): one softmax, less another over the same keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from costcalc.architecture.component import Component, Flag, PositiveFloat, Rule, Size
from costcalc.architecture.norm import Norm, RMSNorm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Handed, Record
from costcalc.units import several

CALLS = 2
"""Kernels want values of the size of keys: they are called for either half of the values, and make all scores twice."""


class Differential(Component):
    """`heads` softmaxes over `kv_heads` key heads of `head_dim`, of which the second half is taken from the first.

    Every softmax weighs values of 2·head_dim: a value head of the first half beside one of the second. The second half
    of the results is multiplied by a factor, of four learned vectors and of the layer's number, taken away from the
    first half, and what is left is normed, head by head.

    bias: on q, k, v and the output. norm: of the 2·head_dim numbers of each of the heads / 2 results. window: each
    query sees the latest `window` keys, itself included; None sees all. scale: what scores are multiplied by, None for
    1 / sqrt(head_dim); it changes no count.
    """

    kind: Literal["differential"] = "differential"
    heads: Size
    kv_heads: Size
    head_dim: Size
    bias: Flag = False
    norm: Norm = RMSNorm(weight=False)
    window: Size | None = None
    scale: PositiveFloat | None = None
    chunk: ClassVar[None] = None
    cache_of: ClassVar[None] = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Heads divide evenly among key/value heads, and both into two halves."""
        hint = "change one of the two"
        yield self.heads % self.kv_heads == 0, "heads {heads} is not a multiple of kv_heads {kv_heads}", hint
        yield self.heads % 2 == 0, "heads {heads} is odd: half of them is taken from the others", "make it even"
        yield self.kv_heads % 2 == 0, "kv_heads {kv_heads} is odd: values are pairs of heads", "make it even"

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
        window = "" if self.window is None else f", window {self.window:,}"
        return f"{heads}, half of them taken from the others{window}{', biases' if self.bias else ''}"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Projections, four vectors, scores and values over the pairs, the norm, the cache, the output."""
        width, queries = {"D": d_model}, {"N": self.heads, "H": self.head_dim}
        keys = {"K": self.kv_heads, "H": self.head_dim}
        for name, made in (("q", queries), ("k", keys), ("v", keys)):
            rows = stream.rows if name == "q" else stream.key_rows
            yield from at.linear(name, rows, width, made, bias=self.bias)
        for name in ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"):
            yield at.weight(name, {"H": self.head_dim})
        pairs = stream.pairs(self.window, None)
        yield at.core("scores", {pairs.letters: Handed(pairs, CALLS), **queries})
        yield at.core("values", {pairs.letters: pairs, "N": self.heads, "H_v": 2 * self.head_dim})
        yield from self.norm.records(at, "norm", {"H_v": 2 * self.head_dim})
        if stream.held is not None:
            held = stream.held(self.window, None)
            for name in ("k_cache", "v_cache"):
                yield at.cached(name, {held.letters: held, **keys}, kind=stream.cache)
        yield from at.linear("output", stream.rows, queries, width, bias=self.bias)
