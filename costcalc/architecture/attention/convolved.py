"""Compressed convolutional attention with grouped heads (arXiv 2510.04476), as in ZAYA1 (`ZayaAttention`).

Heads are few and narrow beside the model's width, and all of the attention happens among them: the output is the first
product that gives as many numbers as the model has. Queries and keys are mixed over the latest tokens before they meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from costcalc.architecture.component import Component, Flag, PositiveFloat, Rule, Size
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Convolved as Places
from costcalc.inventory import Record
from costcalc.units import several


class Convolved(Component):
    """`heads` query heads on `kv_heads` key/value heads of `head_dim`, convolved before they meet.

    Queries and keys go through two causal convolutions. To a query head is then added the mean of what was projected to
    it and to its key head, and to a key head the mean of those of its queries. Lengths of both are made the root of
    head_dim, and a learned number multiplies each key head. Of the K x H numbers of a token's values the second half is
    made of the token before it. Beside keys and values a sequence holds taps + group_taps - 2 numbers of each convolved
    channel, and half of a token's values.

    taps: tokens of the first convolution, of each channel alone. group_taps: of the second, of all numbers of a head
    with one another. bias: on q, k, both halves of the values and the output; the convolutions always have some.
    window: each query sees the latest `window` keys, itself included; None sees all. scale: what scores are multiplied
    by, None for 1 / sqrt(head_dim); it changes no count.
    """

    kind: Literal["convolved"] = "convolved"
    heads: Size
    kv_heads: Size
    head_dim: Size
    taps: Size = 2
    group_taps: Size = 2
    bias: Flag = False
    window: Size | None = None
    scale: PositiveFloat | None = None
    chunk: ClassVar[None] = None
    cache_of: ClassVar[None] = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Heads divide evenly among key/value heads, and values into two halves."""
        yield (
            self.heads % self.kv_heads == 0,
            "heads {heads} is not a multiple of kv_heads {kv_heads}",
            "change one of the two",
        )
        yield (
            self.kv_heads * self.head_dim % 2 == 0,
            "kv_heads {kv_heads} x head_dim {head_dim} is odd: half of the values are those of the token before",
            "make one of the two even",
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
        heads = f"{several(self.heads, 'query head')} on {several(self.kv_heads, 'key/value head')} of {self.head_dim}"
        window = "" if self.window is None else f", window {self.window:,}"
        biases = ", biases" if self.bias else ""
        return f"{heads}, convolved over {self.taps} and {self.group_taps} tokens{window}{biases}"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Projections, convolutions, scores and values over the pairs, the cache and the states, the output."""
        width, queries = {"D": d_model}, {"N": self.heads, "H": self.head_dim}
        keys, half = {"K": self.kv_heads, "H": self.head_dim}, {"half": self.kv_heads * self.head_dim // 2}
        for name, made in (("q", queries), ("k", keys), ("v_current", half), ("v_delayed", half)):
            yield from at.linear(name, stream.rows, width, made, bias=self.bias)
        yield from self._convolutions(at, stream)
        yield at.weight("key_scale", {"K": self.kv_heads})
        pairs = stream.pairs(self.window, None)
        yield at.core("scores", {pairs.letters: pairs, **queries})
        yield at.core("values", {pairs.letters: pairs, **queries})
        if stream.held is not None:
            held = stream.held(self.window, None)
            for name in ("k_cache", "v_cache"):
                yield at.cached(name, {held.letters: held, **keys}, kind=stream.cache)
            yield from self._states(at, half)
        yield from at.linear("output", stream.rows, queries, width, bias=self.bias)

    def _convolutions(self, at: At, stream: Stream) -> Iterator[Record]:
        """C = (N + K)·H channels x taps; and of each of N + K heads its taps x H numbers -> H.

        The library's kernel takes the first at group_taps - 1 places more, which the second looks back to.
        """
        channels, places = {"channels": (self.heads + self.kv_heads) * self.head_dim}, Places(self.group_taps)
        each = {**channels, "taps": self.taps}
        yield at.weight("conv", each)
        yield at.scan("conv", {places.letters: places, **each}, of="conv")
        yield at.weight("conv_bias", channels)
        of_head = {"block_in": self.head_dim, "block_out": self.head_dim}
        within = {"heads_of_both": self.heads + self.kv_heads, "taps": self.group_taps, **of_head}
        yield at.weight("group_conv", within)
        yield at.product("group_conv", {stream.rows.letters: stream.rows, **within})
        yield at.weight("group_conv_bias", channels)

    def _states(self, at: At, half: Mapping[str, int]) -> Iterator[Record]:
        """What the next token's convolutions and values look back to."""
        channels = (self.heads + self.kv_heads) * self.head_dim
        yield at.state("conv_state", {"channels": channels, "taps": self.taps + self.group_taps - 2})
        yield at.state("delayed_state", half)
