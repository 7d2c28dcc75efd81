"""The output head: hidden states to one logit per vocabulary entry. It is a matmul whether or not its table is tied."""

from __future__ import annotations

from collections.abc import Iterator

from costcalc.architecture.component import Component, Flag, PositiveFloat
from costcalc.architecture.embedding import Embedding
from costcalc.architecture.places import At
from costcalc.inventory import Logits, Matmul, Record, Weight


class Head(Component):
    """D -> V, with the embedding's table when tied, or its own; `bias` adds one number per vocabulary entry.

    softcap: logits become softcap * tanh(logits / softcap) (Gemma-2, arXiv 2408.00118); it changes no count.
    When the embedding is factorised (width W) and tied, a projection D -> W comes first (OPT-350m's `project_out`).
    """

    bias: Flag = False
    softcap: PositiveFloat | None = None

    def records(
        self, d_model: int, *, vocab_size: int, embedding: Embedding, tied: bool, table_path: str
    ) -> Iterator[Record]:
        """The projection if there is one, the table if it is not tied, and the matmul with it."""
        rows = Logits()
        axes = embedding.table_axes(d_model, vocab_size) if tied else {"V": vocab_size, "D": d_model}
        if tied and embedding.width is not None:
            yield from At("head").linear("projection", rows, {"D": d_model}, {"W": embedding.width}, bias=False)
        if not tied:
            yield Weight("head", axes, table=True)
        yield Matmul("head", {rows.letters: rows, **axes}, of=table_path if tied else "head")
        if self.bias:
            yield Weight("head_bias", {"V": vocab_size})
