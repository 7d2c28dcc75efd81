"""Attention by way of landmarks (Nyströmformer, arXiv 2102.03902), and a convolution of the values beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.attention.several_heads import SeveralHeads
from costcalc.architecture.component import Flag, PositiveFloat, Rule, Size
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Extent, LandmarkPairs, Matmul, Record, Sequences
from costcalc.units import several

PRODUCTS = 4
"""Of square matrices in one step of the inverse (arXiv 2102.03902, equation 11)."""


class Landmarks(SeveralHeads):
    """`heads` heads; tokens and `landmarks` means of segments meet, in the place of all pairs of tokens.

    head_dim: None means d_model / heads. bias: on queries, keys and values, out_bias: on the output projection.
    landmarks: how many means of queries, and of keys; None attends in full. steps: of the inverse of the landmarks'
    weights. taps: beside it, each head's values are convolved over so many tokens, an odd number; None for no
    convolution. scale: what scores are multiplied by, None for 1 / sqrt(head_dim); it changes no count.
    """

    kind: Literal["landmarks"] = "landmarks"
    bias: Flag = True
    out_bias: Flag = True
    landmarks: Size | None = None
    steps: Size = 6
    taps: Size | None = None
    scale: PositiveFloat | None = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """A convolution around a token takes an odd number."""
        yield from super().rules(d_model)
        yield (
            self.taps is None or self.taps % 2 == 1,
            "`taps` {taps} are even: as many are before a token as behind",
        )
        yield self.landmarks is not None or self.steps == 6, "`steps` are of an inverse, which needs `landmarks`"

    def summary(self, d_model: int) -> str:
        """One line for a reader."""
        met = "" if self.landmarks is None else f"{several(self.landmarks, 'landmark')}, inverse in {self.steps} steps"
        parts = [met] if met else []
        return self.said(d_model, *parts, *([] if self.taps is None else [f"values convolved over {self.taps}"]))

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Projections; pairs with landmarks, and the inverse of those among themselves; the convolution; the output."""
        yield from self.projections(at, d_model, stream.rows, stream.rows, bias=self.bias)
        if self.landmarks is None:
            pairs = stream.pairs(None, None)
            yield from self.core(at, d_model, pairs, pairs)
        else:
            between = [LandmarkPairs(stream.text, self.landmarks, of_values) for of_values in (False, True)]
            yield from self.core(at, d_model, *between)
            texts, heads, met = Sequences(stream.text.of_source), {"N": self.heads}, self.landmarks
            square: dict[str, int | Extent] = {"m_rows": met, "m_inner": met, "m_columns": met}
            each: dict[str, int | Extent] = {**heads, "steps": self.steps, "products": PRODUCTS, **square}
            yield Matmul(f"{at.path}.inverse", {texts.letters: texts, **each}, at.times)
            rows: dict[str, int | Extent] = {
                stream.rows.letters: stream.rows,
                **heads,
                "m_inner": met,
                "m_columns": met,
            }
            yield Matmul(f"{at.path}.by_inverse", rows, at.times)
        yield from self.convolved_values(at, d_model, stream.rows, self.taps)
        yield from self.output(at, d_model, stream.rows, bias=self.out_bias)
