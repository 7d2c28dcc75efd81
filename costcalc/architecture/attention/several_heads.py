"""What attentions of whole texts have in common: as many key/value heads as query heads, and four projections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from costcalc.architecture.component import Component, Rule, Size
from costcalc.architecture.places import At
from costcalc.inventory import Extent, Record
from costcalc.units import several


class SeveralHeads(Component):
    """`heads` heads of `head_dim`, None for d_model / heads; not a kind itself."""

    heads: Size
    head_dim: Size | None = None
    cache_of: ClassVar[None] = None
    chunk: ClassVar[None] = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """The model's width is divided among heads, unless head_dim is given."""
        if self.head_dim is None:
            yield (
                d_model % self.heads == 0,
                "d_model {d_model} is not a multiple of heads {heads}, and no head_dim is given",
            )

    def rotated(self, d_model: int) -> int:
        """Numbers of a head that rotary positions turn."""
        return self.size(d_model)

    def size(self, d_model: int) -> int:
        """Numbers of a head."""
        return d_model // self.heads if self.head_dim is None else self.head_dim

    def axes(self, d_model: int) -> dict[str, int]:
        """N x H."""
        return {"N": self.heads, "H": self.size(d_model)}

    def left_out(self, d_model: int) -> dict[str, tuple[int | float | None, str]]:
        """Head size where it divides, and the scale of scores where there is one."""
        divides = {"head_dim": (d_model // self.heads, "d_model / heads")} if d_model % self.heads == 0 else {}
        has_scale = "scale" in type(self).model_fields
        return {**divides, **({"scale": (self.size(d_model) ** -0.5, "1 / sqrt(head_dim)")} if has_scale else {})}

    def derived(self, d_model: int) -> Iterator[str]:
        """Head size, where it was not written."""
        if self.head_dim is None:
            yield f"head_dim = d_model / heads = {d_model:,} / {self.heads} = {self.size(d_model)}"

    def said(self, d_model: int, *parts: str) -> str:
        """The beginning of a line for a reader, and what differs."""
        return ", ".join([f"{several(self.heads, 'head')} of {self.size(d_model)}", *parts])

    def projections(
        self, at: At, d_model: int, rows: Extent, key_rows: Extent, *, bias: bool, names: str = "qkv"
    ) -> Iterator[Record]:
        """D -> N·H of queries, keys and values."""
        for name in names:
            some = rows if name == "q" else key_rows
            yield from at.linear(name, some, {"D": d_model}, self.axes(d_model), bias=bias)

    def core(self, at: At, d_model: int, scores: Extent, values: Extent) -> Iterator[Record]:
        """Scores and weighted values over so many pairs."""
        axes: Mapping[str, int] = self.axes(d_model)
        yield at.core("scores", {scores.letters: scores, **axes})
        yield at.core("values", {values.letters: values, **axes})

    def convolved_values(self, at: At, d_model: int, rows: Extent, taps: int | None) -> Iterator[Record]:
        """Each head's values over so many tokens around each, with the same taps for all numbers of a head."""
        if taps is not None:
            yield at.weight("conv", {"N": self.heads, "taps": taps})
            yield at.scan("conv", {rows.letters: rows, **self.axes(d_model), "taps": taps}, of="conv")

    def output(self, at: At, d_model: int, rows: Extent, *, bias: bool) -> Iterator[Record]:
        """N·H -> D."""
        yield from at.linear("output", rows, self.axes(d_model), {"D": d_model}, bias=bias)
