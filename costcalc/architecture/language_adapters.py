"""Adapters of languages behind a feed-forward network (X-MOD, arXiv 2205.06266): a small network for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.component import Component, Rule, Size
from costcalc.architecture.feed_forward.activation import Activation
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Matmul, Record, Weight


class LanguageAdapters(Component):
    """`languages` networks D -> width -> D with biases, of which a text goes through that of its language.

    It stands on the sum of the network and the stream. reads: behind which norm, an "own" one, that of the feed-forward
    network once more ("shared"), or none. residual: what its result is added to, what it reads ("normed") or what came
    in front of that norm ("plain").
    """

    languages: Size
    width: Size
    activation: Activation = "gelu"
    reads: Literal["own", "shared"] | None = "shared"
    residual: Literal["normed", "plain"] = "normed"

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Which of two is a question of a norm."""
        is_one = self.reads is not None or self.residual == "normed"
        yield is_one, "`residual: plain` needs what it `reads` normed", "leave it out"

    def summary(self) -> str:
        """One line for a reader."""
        return f"{self.languages:,} languages, {self.width:,} wide"

    def records(self, at: At, d_model: int, stream: Stream, norm: Norm) -> Iterator[Record]:
        """A norm if it is its own; languages x D x W and back, of which a token uses one."""
        if self.reads == "own":
            yield from norm.records(at, "adapter_norm", {"D": d_model})
        here, sizes = at.under("adapter"), {"D": d_model, "W": self.width}
        for name, made in (("down", "W"), ("up", "D")):
            path, used = f"{here.path}.{name}", {"languages": 1}
            yield Weight(path, {"languages": self.languages, **sizes}, here.sets, used=used)
            yield Matmul(path, {stream.rows.letters: stream.rows, **sizes}, here.times, path)
            bias = {"languages": self.languages, made: sizes[made]}
            yield Weight(f"{path}_bias", bias, here.sets, used=used)
