"""A gate behind the norm in front of a sublayer (`AXK2GatedRMSNorm`): what is normed decides how much of it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.component import Component, Size
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record


class NormGate(Component):
    """y becomes y · sigmoid(silu(y W) V), with `rank` numbers between the two products.

    before: in front of "all" sublayers, or of the "attention" alone.
    """

    rank: Size
    before: Literal["all", "attention"] = "all"

    def records(self, at: At, name: str, d_model: int, stream: Stream) -> Iterator[Record]:
        """D -> rank -> D, of the norm of this name; nothing where it has no gate."""
        if self.before == "attention" and name != "attention_norm":
            return
        width, inside = {"D": d_model}, {"rank": self.rank}
        yield from at.linear(f"{name}_gate_down", stream.rows, width, inside, bias=False)
        yield from at.linear(f"{name}_gate_up", stream.rows, inside, width, bias=False)
