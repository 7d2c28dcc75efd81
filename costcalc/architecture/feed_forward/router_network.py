"""A small network in front of a router's scores (ZAYA1, arXiv 2511.17127; `ZayaRouter`)."""

from __future__ import annotations

from collections.abc import Iterator

from costcalc.architecture.component import Component, Flag, Size
from costcalc.architecture.norm import Norm, RMSNorm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record


class RouterNetwork(Component):
    """Scores are made of `width` numbers, not of the input: a product, a norm, and two square matrices with GELU.

    carried: the numbers of the nearest earlier router that has as many are added behind the first product, each times a
    number of its own (depth averaging); where there is no earlier one, nothing is. norm: before the square matrices.
    """

    width: Size
    carried: Flag = False
    norm: Norm = RMSNorm()

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """D -> W, W -> W twice, all with biases."""
        inside = {"W_router": self.width}
        yield from at.linear("router_down", stream.rows, {"D": d_model}, inside, bias=True)
        if self.carried:
            yield at.weight("router_carried_gain", inside)
        yield from self.norm.records(at, "router_norm", inside)
        for name in ("router_inner1", "router_inner2"):
            yield from at.linear(name, stream.rows, inside, {"W_router_out": self.width}, bias=True)
