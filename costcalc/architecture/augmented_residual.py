"""LAuReL, a learned augmented residual (arXiv 2411.07501): a product of low rank beside the attention."""

from __future__ import annotations

from collections.abc import Iterator

from costcalc.architecture.component import Component, Size
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record


class AugmentedResidual(Component):
    """h + norm(h W_down W_up), of h that the attention reads too, joins the sum behind it (`Gemma3nTextLaurelBlock`).

    The sum of the stream, the attention's output and this is divided by the root of 2. rank: numbers between the two
    matrices.
    """

    rank: Size

    def summary(self) -> str:
        """One line for a reader."""
        return f"augmented residual of rank {self.rank:,}"

    def records(self, at: At, d_model: int, stream: Stream, norm: Norm) -> Iterator[Record]:
        """D -> rank -> D, and a norm."""
        here, width, rank = at.under("augmented_residual"), {"D": d_model}, {"R_own": self.rank}
        yield from here.linear("down", stream.rows, width, rank, bias=False)
        yield from here.linear("up", stream.rows, rank, width, bias=False)
        yield from norm.records(at, "augmented_residual_norm", width)
