"""The two-matrix feed-forward network of arXiv 1706.03762, section 3.3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from costcalc.architecture.component import Component, Flag, Rule, Size
from costcalc.architecture.feed_forward.activation import NetworkActivation, activation_records
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record


class Dense(Component):
    """activation(x W_up) W_down: two matrices of d_model x d_ff.

    up_groups, down_groups: so many equal parts of what comes in each make a part of what comes out (SqueezeBERT, arXiv
    2006.11316, section 3; ConvBERT).
    """

    kind: Literal["dense"] = "dense"
    d_ff: Size
    activation: NetworkActivation = "gelu"
    bias: Flag = False
    up_groups: Size | None = None
    down_groups: Size | None = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Groups divide both widths."""
        for groups in (self.up_groups, self.down_groups):
            if groups is not None:
                message = f"{groups} groups do not divide d_model {d_model} and d_ff {self.d_ff}"
                yield d_model % groups == 0 and self.d_ff % groups == 0, message, "change one of the three"

    def summary(self) -> str:
        """One line for a reader."""
        groups = "" if self.up_groups is self.down_groups is None else ", in groups"
        return f"dense {self.activation}, {self.d_ff:,} wide{', biases' if self.bias else ''}{groups}"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """D -> F and F -> D."""
        more: dict[str, Any] = {"bias": self.bias, "groups": self.up_groups}
        yield from at.linear("up", stream.rows, {"D": d_model}, {"F": self.d_ff}, **more)
        yield from activation_records(at, self.activation)
        more = {"bias": self.bias, "groups": self.down_groups}
        yield from at.linear("down", stream.rows, {"F": self.d_ff}, {"D": d_model}, **more)
