"""A local window, and with it sums of the text's blocks, made in each layer (LongT5, arXiv 2112.07916)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.attention.several_heads import SeveralHeads
from costcalc.architecture.component import Flag, PositiveFloat, Rule, Size
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import LocalPairs, Matmul, Record, Summed, WithSums


class Local(SeveralHeads):
    """`heads` heads; each token sees itself and `window // 2` tokens to either side, and with `summed` all sums.

    head_dim: None means d_model / heads. bias: on queries, keys and values, out_bias: on the output projection. summed:
    tokens of a block whose inputs are added up, normed by `norm` and made into one more key and value for all tokens
    (transient global attention); tokens behind the last whole block count to it. norm: of the sums. scale: what
    scores are multiplied by, None for 1 / sqrt(head_dim); it changes no count. Kernels are handed three blocks of
    window // 2 + 1 tokens for each.
    """

    kind: Literal["local"] = "local"
    bias: Flag = False
    out_bias: Flag = False
    window: Size
    summed: Size | None = None
    norm: Norm | None = None
    scale: PositiveFloat | None = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Sums are normed."""
        yield from super().rules(d_model)
        yield (
            (self.norm is None) == (self.summed is None),
            "`norm` is of the sums of `summed` tokens: one needs the other",
        )

    def summary(self, d_model: int) -> str:
        """One line for a reader."""
        seen = [] if self.summed is None else [f"sums of {self.summed:,} tokens"]
        return self.said(d_model, f"window {self.window:,}", *seen)

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Sums, projections, pairs of windows and of tokens with sums, the output."""
        key_rows = stream.rows if self.summed is None else WithSums(stream.text, self.summed)
        if self.summed is not None and self.norm is not None:
            added = Summed(stream.text, self.summed)
            yield Matmul(f"{at.path}.sums", {added.letters: added, "D": d_model}, at.times)
            yield from self.norm.records(at, "sums_norm", {"D": d_model})
        yield from self.projections(at, d_model, stream.rows, key_rows, bias=self.bias)
        pairs = LocalPairs(stream.text, self.window, self.summed)
        yield from self.core(at, d_model, pairs, pairs)
        yield from self.output(at, d_model, stream.rows, bias=self.out_bias)
