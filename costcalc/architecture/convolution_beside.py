"""A convolution beside a layer (DeBERTa-v2, arXiv 2006.03654, in its code): it reads what the layer reads."""

from __future__ import annotations

from collections.abc import Iterator

from costcalc.architecture.component import Component, Rule, Size
from costcalc.architecture.feed_forward.activation import Activation
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record


class ConvolutionBeside(Component):
    """A token with its neighbours, taps // 2 to either side, times a matrix: added to what a layer gives, then normed.

    taps: tokens that it reads, an odd number. groups: equal parts of the channels, each of which is mixed with itself
    alone. activation: of what it gives, before it is added.
    """

    taps: Size
    groups: Size = 1
    activation: Activation = "tanh"

    def rules(self, d_model: int) -> Iterator[Rule]:
        """As many places come out as go in, in equal groups."""
        yield self.taps % 2 == 1, "a convolution of {taps} taps gives other places: an odd number is needed"
        yield d_model % self.groups == 0, "d_model {d_model} is not a multiple of groups {groups}"

    def summary(self) -> str:
        """One line for a reader."""
        parts = "" if self.groups == 1 else f" in {self.groups:,} groups"
        return f"convolution over {self.taps} tokens{parts}, {self.activation}"

    def records(self, at: At, d_model: int, stream: Stream, norm: Norm) -> Iterator[Record]:
        """Of each group taps x D/groups -> D/groups, a bias, and the norm of the sum."""
        of_group = d_model // self.groups
        axes = {"groups": self.groups, "taps": self.taps, "block_in": of_group, "block_out": of_group}
        yield at.weight("convolution", axes)
        yield at.product("convolution", {stream.rows.letters: stream.rows, **axes})
        yield at.weight("convolution_bias", {"D": d_model})
        yield from norm.records(at, "convolution_norm", {"D": d_model})
