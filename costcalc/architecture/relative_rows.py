"""Tables of distances beside learned positions: numbers for each head (MPNet), rows as wide as the model (DeBERTa)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from costcalc.architecture.component import Component, Rule, Size, Whole
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At
from costcalc.inventory import Record


class LearnedAndRelativePositions(Component):
    """A trained table of `length` rows, added to the embeddings, and relative positions beside it (MPNet, 2004.09297).

    offset: the first rows that no position uses. buckets: rows of the one table of relative positions for all layers, a
    number for each head and each bucket of distances, added to the scores (arXiv 1910.10683, section 2.1).
    max_distance: from where on all distances are one bucket; it changes no count.
    """

    kind: Literal["learned_and_relative"] = "learned_and_relative"
    length: Size
    offset: Whole = 0
    buckets: Size = 32
    max_distance: Size = 128
    added: ClassVar[bool] = True
    per_layer: ClassVar[bool] = False

    @property
    def rows(self) -> int:
        """Those of the table that positions use."""
        return self.length - self.offset

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Those of both kinds."""
        yield self.offset < self.length, "offset {offset} leaves no row of {length}"
        yield self.buckets >= 4, "buckets {buckets} are fewer than 4"
        yield (
            self.buckets // 2 < self.max_distance,
            "max_distance {max_distance} is not above half the {buckets} buckets",
        )

    def summary(self) -> str:
        """One line for a reader."""
        unused = f", {self.offset} of them unused" if self.offset else ""
        return f"learned, {self.length:,} rows{unused}, and relative, {self.buckets:,} buckets"

    def records(self, at: At, width: Mapping[str, int]) -> Iterator[Record]:
        """One table of length x D, or x the embedding's width W where that is projected afterwards."""
        yield at.weight("positions", {"length": self.length, **width}, table=True)

    def bias_records(self, at: At, heads: int) -> Iterator[Record]:
        """A table of buckets x N."""
        yield at.weight("distances", {"buckets": self.buckets, "N": heads}, table=True)


class RelativeRows(Component):
    """A table of rows for distances, which each disentangled attention projects (DeBERTa, arXiv 2006.03654).

    span: how many distances to either side have a row of their own, 2 x span rows in all, each as wide as the model;
    further ones share the last. norm: of these rows (DeBERTa-v2). max_distance: half of the rows are for single steps,
    the others reach further in growing ones, up to here (DeBERTa-v2's buckets); it changes no count. length: rows of a
    trained table that is added to the embeddings as well (`position_biased_input`).
    """

    kind: Literal["relative_rows"] = "relative_rows"
    span: Size
    norm: Norm | None = None
    max_distance: Size | None = None
    length: Size | None = None
    added: ClassVar[bool] = True

    @property
    def rows(self) -> int | None:
        """Those of the table that is added; without one nothing ends."""
        return self.length

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Growing steps reach beyond single ones."""
        yield (
            self.max_distance is None or (self.span >= 4 and self.max_distance > self.span // 2 + 1),
            "growing steps need a span of at least 4, and a `max_distance` well above half of it",
        )

    def summary(self) -> str:
        """One line for a reader."""
        learned = "" if self.length is None else f", and learned, {self.length:,} rows"
        return f"{2 * self.span:,} rows of distances{learned}"

    def records(self, at: At, width: Mapping[str, int]) -> Iterator[Record]:
        """Length x D, 2·span x D, and the norm of the latter."""
        if self.length is not None:
            yield at.weight("positions", {"length": self.length, **width}, table=True)
        yield at.weight("distances", {"rows_of_distances": 2 * self.span, **width}, table=True)
        if self.norm is not None:
            yield from self.norm.records(at, "distances_norm", width)
