"""The two-matrix feed-forward network of arXiv 1706.03762, section 3.3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.component import Component, Flag, Size
from costcalc.architecture.feed_forward.activation import NetworkActivation, activation_records
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record


class Dense(Component):
    """activation(x W_up) W_down: two matrices of d_model x d_ff."""

    kind: Literal["dense"] = "dense"
    d_ff: Size
    activation: NetworkActivation = "gelu"
    bias: Flag = False

    def summary(self) -> str:
        """One line for a reader."""
        return f"dense {self.activation}, {self.d_ff:,} wide{', biases' if self.bias else ''}"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """D -> F and F -> D."""
        yield from at.linear("up", stream.rows, {"D": d_model}, {"F": self.d_ff}, bias=self.bias)
        yield from activation_records(at, self.activation)
        yield from at.linear("down", stream.rows, {"F": self.d_ff}, {"D": d_model}, bias=self.bias)
