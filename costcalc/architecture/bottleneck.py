"""A layer inside a bottleneck (MobileBERT, arXiv 2004.02984, section 3): narrower than the stream, several networks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.attention import GroupedQuery
from costcalc.architecture.component import Component, Flag, Rule, Size
from costcalc.architecture.feed_forward import FeedForward
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record

MOST_NETWORKS = 1_000


class Bottleneck(Component):
    """Attention and `networks` networks one after another, each with a norm behind its sum, `width` numbers wide.

    width: None for that of the model, without matrices in front and behind. attends: what queries and keys are made of,
    a "shared" bottleneck of their own, the layer's "input" bottleneck, or the "stream"; values are of the stream, but
    for "input". spare: a bottleneck for queries and keys is held, and not used.
    """

    width: Size | None = None
    attends: Literal["shared", "input", "stream"] = "shared"
    networks: Size = 4
    spare: Flag = False

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Without a width all is of the stream."""
        yield self.width is not None or self.attends == "stream", "without a `width` there is only the `stream`"
        yield (
            not self.spare or self.attends == "input",
            "a `spare` bottleneck is one that `attends: input` leaves unused",
        )
        yield self.networks <= MOST_NETWORKS, f"more than {MOST_NETWORKS:,} networks"

    def summary(self) -> str:
        """One line for a reader."""
        wide = "" if self.width is None else f"{self.width:,} wide, "
        return f"{wide}{self.networks:,} networks, attention of the {self.attends}"

    def inner(self, d_model: int) -> int:
        """The width of the layer inside."""
        return d_model if self.width is None else self.width

    def records(
        self, at: At, d_model: int, stream: Stream, *, norm: Norm, attention: GroupedQuery, network: FeedForward
    ) -> Iterator[Record]:
        """What leads in, the attention, the networks, what leads out."""
        inner, around = self.inner(d_model), at.under("bottleneck")
        names = ["input"] * (self.width is not None) + ["attention"] * (self.attends == "shared")
        for name in names:
            yield from around.linear(name, stream.rows, {"D": d_model}, {"W": inner}, bias=True)
            yield from norm.records(around, f"{name}_norm", {"W": inner})
        if self.spare:
            yield around.weight("attention", {"D": d_model, "W": inner})
            yield around.weight("attention_bias", {"W": inner})
            yield from norm.records(around, "attention_norm", {"W": inner})
        yield from self._attention(at.under("attention"), d_model, stream, attention)
        yield from norm.records(at, "attention_norm", {"W": inner})
        for index in range(self.networks - 1):
            yield from network.records(at.under(f"networks.{index}"), inner, stream)
            yield from norm.records(at, f"networks.{index}_norm", {"W": inner})
        yield from network.records(at.under("feed_forward"), inner, stream)
        yield from norm.records(at, "feed_forward_norm", {"W": inner})
        if self.width is not None:
            yield from around.linear("output", stream.rows, {"W": inner}, {"D": d_model}, bias=True)
            yield from norm.records(around, "output_norm", {"D": d_model})

    def _attention(self, at: At, d_model: int, stream: Stream, attention: GroupedQuery) -> Iterator[Record]:
        """Queries and keys of one width, values of another; the core; and back to the width inside."""
        inner = {"W": self.inner(d_model)}
        of_heads = {"N": attention.heads, "H": inner["W"] // attention.heads}
        read = {"D": d_model} if self.attends == "stream" else inner
        of_values = inner if self.attends == "input" else {"D": d_model}
        for name, width in (("q", read), ("k", read), ("v", of_values)):
            yield from at.linear(name, stream.rows, width, of_heads, bias=attention.bias)
        pairs = stream.pairs(None, None)
        yield at.core("scores", {pairs.letters: pairs, **of_heads})
        yield at.core("values", {pairs.letters: pairs, **of_heads})
        yield from at.linear("output", stream.rows, of_heads, inner, bias=attention.out_bias)
