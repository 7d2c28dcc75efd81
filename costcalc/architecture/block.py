"""One layer: attention and feed-forward, with their norms before, after or around them, in sequence or side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from costcalc.architecture.attention import Attention
from costcalc.architecture.component import Component, Name, Rule, Size, Where
from costcalc.architecture.feed_forward import FeedForward
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At, Stream
from costcalc.architecture.positions import NoPositions, Positions, RotaryPositions
from costcalc.errors import shown
from costcalc.inventory import Record


def _no_number(value: Any) -> Any:
    """0 equals False in Python, but nobody means it."""
    return value if isinstance(value, (bool, str)) else shown(value)


class Block(Component):
    """`repeat` equal layers.

    norms: "pre" (before each sublayer, arXiv 2002.04745), "post" (after the residual sum, 1706.03762), "output" (on
        each sublayer's output, OLMo-2), "sandwich" (before and on the output, Gemma-2).
    parallel: attention and feed-forward read the same input (GPT-J, PaLM): "one_norm" shared, or "two_norms" (NeoX).
    """

    name: Name | None = None
    repeat: Size = 1
    norm: Norm
    norms: Literal["pre", "post", "output", "sandwich"] = "pre"
    parallel: Annotated[Literal[False, "one_norm", "two_norms"], BeforeValidator(_no_number)] = False
    positions: Positions = NoPositions()
    attention: Attention | None = None
    feed_forward: FeedForward | None = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """A layer does something; parallel needs two sublayers and norms before them; rotation fits into a head."""
        has_both = self.attention is not None and self.feed_forward is not None
        yield (
            self.attention is not None or self.feed_forward is not None,
            "a layer needs `attention` or `feed_forward`, or both",
        )
        yield not self.parallel or has_both, "`parallel` needs both `attention` and `feed_forward`"
        yield not self.parallel or self.norms == "pre", "`parallel` goes with `norms: pre`, not with {norms}"
        if self.attention is not None and isinstance(self.positions, RotaryPositions):
            rotary_dim, (_, head_dim) = self.positions.rotary_dim, self.attention.sizes(d_model)
            if rotary_dim is not None:
                yield rotary_dim <= head_dim, f"rotary_dim {rotary_dim} is more than head_dim {head_dim}"
                yield rotary_dim % 2 == 0, f"rotary_dim {rotary_dim} is odd: RoPE rotates pairs"

    def check(self, where: Where, d_model: int) -> None:
        """The rules of its parts, then its own."""
        self.positions.check((*where, "positions"), d_model)
        if self.attention is not None:
            self.attention.check((*where, "attention"), d_model)
        super().check(where, d_model)

    def derived(self, d_model: int) -> Iterator[str]:
        """What the attention derives."""
        if self.attention is not None:
            yield from self.attention.derived(d_model)

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Norms, attention, feed-forward, in the order in which a reader meets them."""
        width = {"D": d_model}
        if self.parallel == "one_norm":
            yield from self.norm.records(at, "norm", width)
        for name in ("attention", "feed_forward"):
            part: Attention | FeedForward | None = getattr(self, name)
            if part is None:
                continue
            if self.parallel != "one_norm":
                yield from self.norm.records(at, f"{name}_norm", width)
            yield from part.records(at.under(name), d_model, stream)
            if self.norms == "sandwich":
                yield from self.norm.records(at, f"{name}_output_norm", width)
