"""A further table of the embeddings, beside those of the vocabulary, the positions and the token types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.component import Component, Name, Rule, Size
from costcalc.architecture.places import At
from costcalc.inventory import Record


class EmbeddingTable(Component):
    """Rows that tokens look up by other numbers than their own: of their sound or shape (RoCBERT, ACL 2022, paper 65),
    of their box on a page (LayoutLM, arXiv 1912.13318), of their cell of a table (TAPAS, arXiv 2004.02349).

    use: "added" to what a token has; "joined" to it, side by side, before the projection to the model's width
    (RoCBERT); "held" by the model, where a text alone looks up none (the languages of XLM, arXiv 1901.07291). width:
    numbers of a row, where they are not those of what it is added to.
    """

    name: Name
    rows: Size
    width: Size | None = None
    use: Literal["added", "joined", "held"] = "added"

    def rules(self, d_model: int) -> Iterator[Rule]:
        """What is joined has a width of its own, what is added has none."""
        yield (
            self.use != "added" or self.width is None,
            "a table that is added is as wide as what it is added to",
            "take `width` out",
        )
        yield self.use != "joined" or self.width is not None, "a table that is joined needs a `width`"

    def records(self, at: At, added: dict[str, int]) -> Iterator[Record]:
        """Its rows x its width, or x `added`, the width of what it is added to."""
        width = added if self.width is None else {"W_table": self.width}
        yield at.under("tables").weight(self.name, {"rows": self.rows, **width}, table=True)
