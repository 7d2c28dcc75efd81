"""A short convolution of what a sublayer gives, before it joins the stream (Inkling)."""

from __future__ import annotations

from collections.abc import Iterator

from costcalc.architecture.component import Component, Flag, Size
from costcalc.architecture.mixer.state import convolution
from costcalc.architecture.places import At
from costcalc.inventory import Record


class OutputConv(Component):
    """y + conv(y), over the latest `taps` tokens of each of d_model channels; held of a sequence are as many.

    means: the sum is divided by the root of taps + 1 (Inkling-2); it changes no count.
    """

    taps: Size = 4
    means: Flag = False

    def records(self, at: At, d_model: int) -> Iterator[Record]:
        """D x taps."""
        yield from convolution(at, d_model, self.taps, bias=False)
