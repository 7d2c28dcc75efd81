"""The token embedding: one row per vocabulary entry, looked up, so no FLOPs; optionally narrower than the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from costcalc.architecture.component import Component, Flag, PositiveFloat, Rule, Size
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record


class Embedding(Component):
    """A vocabulary table of V x D, or V x W and a projection W -> D (factorised: ALBERT, arXiv 1909.11942).

    width: the table's width W where it is not d_model. bias: whether the projection to d_model has one.
    scale: what looked-up rows are multiplied by (sqrt(d_model) in Gemma). It changes no count.
    """

    width: Size | None = None
    bias: Flag = False
    scale: PositiveFloat = 1.0

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Only a projection can have a bias."""
        yield self.width is not None or not self.bias, "`bias` belongs to a projection, which needs a `width`"

    def left_out(self, d_model: int) -> dict[str, tuple[Any, str]]:
        """Rows as wide as the model; a written width of the same size would bring a projection."""
        return {"width": (None, "d_model")}

    def table_axes(self, d_model: int, vocab_size: int) -> dict[str, int]:
        """The axes of the table, which a tied head multiplies by: V x D or V x W."""
        return {"V": vocab_size, "D": d_model} if self.width is None else {"V": vocab_size, "W": self.width}

    def records(self, at: At, d_model: int, stream: Stream, *, vocab_size: int) -> Iterator[Record]:
        """The table, and the projection of a factorised one."""
        yield at.weight("embedding", self.table_axes(d_model, vocab_size), table=True)
        if self.width is not None:
            yield from at.linear("embedding_projection", stream.rows, {"W": self.width}, {"D": d_model}, bias=self.bias)
