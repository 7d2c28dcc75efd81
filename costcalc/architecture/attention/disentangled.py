"""Disentangled attention (DeBERTa, arXiv 2006.03654, section 3.1): what a token says, and how far away it stands.

To the scores of content with content are added those of content with the distance, and of the distance with content.
All tokens meet all rows of distances, of which each pair then takes its own, as in Algorithm 1 of the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from costcalc.architecture.component import Component, Flag, Rule, Size
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Distances, Matmul, Record
from costcalc.units import several


class Disentangled(Component):
    """`heads` heads of d_model / heads, whose stack has positions of the kind `relative_rows`.

    to_position: queries meet rows of distances, projected as keys are. from_position: rows of distances, projected as
    queries are, meet keys. weights: of these projections, a layer's "own" ones, or "shared" with its queries and keys
    (then both are made). span: that of the table. trimmed: rows that no pair of a text can take are left out (the first
    version). key_bias: on keys, and on what makes keys of distances; all else has one.
    """

    kind: Literal["disentangled"] = "disentangled"
    heads: Size
    span: Size
    to_position: Flag = True
    from_position: Flag = True
    weights: Literal["own", "shared"] = "own"
    trimmed: Flag = False
    key_bias: Flag = True
    window: ClassVar[None] = None
    chunk: ClassVar[None] = None
    cache_of: ClassVar[None] = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """The model's width divides among the heads."""
        yield d_model % self.heads == 0, "d_model {d_model} is not a multiple of heads {heads}", "change one of the two"

    def rotated(self, d_model: int) -> int:
        """Numbers of a head; no rotary positions turn any."""
        return d_model // self.heads

    def sizes(self, d_model: int) -> tuple[int, int]:
        """(kv_heads, head_dim)."""
        return self.heads, d_model // self.heads

    def left_out(self, d_model: int) -> dict[str, tuple[Any, str]]:
        """Nothing."""
        del d_model
        return {}

    def summary(self, d_model: int) -> str:
        """One line for a reader."""
        words = ["content to position"] * self.to_position + ["position to content"] * self.from_position
        own = "" if self.weights == "own" else ", projected as content is"
        said = f" with {' and '.join(words)}{own}" if words else ""
        return f"{several(self.heads, 'head')} of {d_model // self.heads}, disentangled{said}"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Projections of tokens and of distances, scores of each with each, values, the output."""
        width, of_heads = {"D": d_model}, {"N": self.heads, "H": d_model // self.heads}
        for name, bias in (("q", True), ("k", self.key_bias), ("v", True)):
            yield from at.linear(name, stream.rows, width, of_heads, bias=bias)
        pairs = stream.pairs(None, None)
        yield at.core("scores", {pairs.letters: pairs, **of_heads})
        yield from self._of_distances(at, width, of_heads, stream)
        yield at.core("values", {pairs.letters: pairs, **of_heads})
        yield from at.linear("output", stream.rows, of_heads, width, bias=True)

    def _of_distances(
        self, at: At, width: dict[str, int], of_heads: dict[str, int], stream: Stream
    ) -> Iterator[Record]:
        """Rows of distances made keys and queries, once for all sequences; and every token against all of them."""
        rows: Any = Distances(self.span) if self.trimmed else 2 * self.span
        letters = {"distances" if self.trimmed else "rows_of_distances": rows}
        for name, is_there, like, bias in (
            ("distance_k", self.to_position, "k", self.key_bias),
            ("distance_q", self.from_position, "q", True),
        ):
            if self.weights == "shared":
                path = f"{at.path}.{name}"
                yield Matmul(path, {**letters, **width, **of_heads}, at.times, f"{at.path}.{like}")
            elif is_there:
                yield at.weight(name, {**width, **of_heads})
                yield at.product(name, {**letters, **width, **of_heads})
                if bias:
                    yield at.weight(f"{name}_bias", of_heads)
        for name, is_there in (("to_position", self.to_position), ("from_position", self.from_position)):
            if is_there:
                axes = {stream.rows.letters: stream.rows, **letters, **of_heads}
                yield at.under(name).core("scores", axes)
