"""The bottom of a stack: token rows, positions and token types, looked up and so without FLOPs; a norm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from costcalc.architecture.affine import affine_records
from costcalc.architecture.component import Component, Flag, PositiveFloat, Rule, Size, Where
from costcalc.architecture.embedding_table import EmbeddingTable
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At, Stream
from costcalc.architecture.positions import Positions
from costcalc.inventory import Record


class Embedding(Component):
    """A vocabulary table of V x D, or V x W and a projection W -> D (factorised: ALBERT, arXiv 1909.11942).

    width: the table's width W where it is not d_model. bias: whether the projection to d_model has one.
    project: "before" positions, token types and the norm, which then have d_model (OPT); "after" them, when they have
    the table's width (ALBERT, ELECTRA). scale: what looked-up rows are multiplied by (sqrt(d_model) in Gemma); it
    changes no count. token_types: rows of a table that tells the parts of a text apart (BERT, arXiv 1810.04805). norm:
    a norm of the sum of all these, at the bottom of each stack. affine: what enters the first layer is shifted and
    scaled, channel by channel (ZAYA1). tables: further ones. own_rows: tokens whose rows are held beside the table, so
    that the head has none of theirs (the end of an image in T5Gemma-2). neighbours: the rows of the token behind and of
    the one before are joined to a token's (MobileBERT's trigrams, arXiv 2004.02984, section 3.2).
    """

    width: Size | None = None
    bias: Flag = False
    project: Literal["before", "after"] = "before"
    scale: PositiveFloat = 1.0
    token_types: Size | None = None
    norm: Norm | None = None
    affine: Flag = False
    neighbours: Flag = False
    tables: tuple[EmbeddingTable, ...] = ()
    own_rows: Size | None = None

    def check(self, where: Where, d_model: int) -> None:
        """The rules of its tables, then its own."""
        for index, table in enumerate(self.tables):
            table.check((*where, "tables", index), d_model)
        super().check(where, d_model)

    @property
    def joined(self) -> int:
        """Numbers that tables join to a row."""
        return sum(table.width for table in self.tables if table.use == "joined" and table.width is not None)

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Only a projection can have a bias, and stand before or after something."""
        yield self.width is not None or not self.bias, "`bias` belongs to a projection, which needs a `width`"
        is_placed = self.project == "before"
        yield self.width is not None or is_placed, "`project` says where the projection stands, which needs a `width`"
        names = [table.name for table in self.tables]
        yield len(names) == len(set(names)), "two `tables` have one name"
        joins = self.neighbours or any(table.use == "joined" for table in self.tables)
        yield (
            not joins or (self.width is not None and self.project == "before"),
            "what `tables` or `neighbours` join is projected: that needs a `width`, and `project: before`",
        )

    def left_out(self, d_model: int) -> dict[str, tuple[Any, str]]:
        """Rows as wide as the model; a written width of the same size would bring a projection."""
        return {"width": (None, "d_model")}

    def table_axes(self, d_model: int, vocab_size: int) -> dict[str, int]:
        """The axes of the table, which a tied head multiplies by: V x D or V x W."""
        return {"V": vocab_size, **self.width_axes(d_model)}

    def width_axes(self, d_model: int) -> dict[str, int]:
        """D, or W where the table has a width of its own."""
        return {"D": d_model} if self.width is None else {"W": self.width}

    def records(
        self, at: At, d_model: int, stream: Stream, positions: Positions, *, vocab_size: int | None
    ) -> Iterator[Record]:
        """The table (vocab_size None: another stack's is looked up), the projection, and what is added to the rows."""
        if vocab_size is not None:
            yield at.weight("embedding", self.table_axes(d_model, vocab_size), table=True)
            if self.own_rows is not None:
                yield at.weight("embedding_rows", {"own_rows": self.own_rows, **self.width_axes(d_model)}, table=True)
        added = self.width_axes(d_model) if self.project == "after" else {"D": d_model}
        if self.project == "before":
            yield from self._projection(at, d_model, stream)
        yield from positions.records(at, added)
        if self.token_types is not None:
            yield at.weight("token_types", {"token_types": self.token_types, **added}, table=True)
        for table in self.tables:
            yield from table.records(at, added)
        if self.norm is not None:
            yield from self.norm.records(at, "embedding_norm", added)
        if self.project == "after":
            yield from self._projection(at, d_model, stream)
        if self.affine:
            yield from affine_records(at, "embedding", d_model)

    def _projection(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        if self.width is not None:
            whole = self.width * (3 if self.neighbours else 1) + self.joined
            joins = self.neighbours or any(table.use == "joined" for table in self.tables)
            read = {"joined": whole} if joins else {"W": self.width}
            yield from at.linear("embedding_projection", stream.rows, read, {"D": d_model}, bias=self.bias)
