"""Hyper-connections (arXiv 2409.19606), constrained to a manifold (mHC, arXiv 2512.24880), as DeepSeek-V4 has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.block import Block
from costcalc.architecture.block_rules import SUBLAYERS
from costcalc.architecture.component import Component, PositiveFloat, RuleError, Size, Where
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Matmul, Record


class HyperConnections(Component):
    """A residual stream of `streams` parts of d_model numbers each (`DeepseekV4HyperConnection`).

    Each sublayer reads a sum of all parts, and what it gives is added to each; the parts are mixed by a matrix of
    streams x streams before. All of these factors are made of the parts together, each token's own, and the matrix is
    made doubly stochastic by `iterations` steps of Sinkhorn and Knopp. The parts are copies of the embeddings below the
    first layer; a sum of them, made in the same way, goes to the norm above the last. eps: added to factors, and to
    what is divided by. magnitude: of the factors that a sublayer's output is multiplied by. These change no count, and
    nor do iterations. mixing: "none" where the parts go on as they are, and no matrix is made (`HYV4HyperConnection`).
    """

    streams: Size
    iterations: Size = 20
    eps: PositiveFloat = 1e-6
    magnitude: PositiveFloat = 2.0
    mixing: Literal["doubly_stochastic", "none"] = "doubly_stochastic"

    def check_block(self, block: Block, where: Where) -> None:
        """A sublayer with a norm before it, and nothing else that changes how its output joins the stream."""
        plain = block.norms == "pre" and not block.parallel and block.attention_norm and block.residual_scale == 1
        plain = plain and not block.residual_mean
        others = ("cross_attention", "shared_block", "augmented_residual", "feed_forward_beside", "shortcut")
        bare = not any(getattr(block, key) is not None for key in others)
        if not (plain and bare) or block.residual_affine or block.layer_scale or block.sublayer_gates:
            said = f"`hyper_connections` go with `norms: pre`, and without {', '.join(others)} and factors of sums"
            raise RuleError(said, where, "take those out")

    def summary(self) -> str:
        """One line for a reader."""
        does = "mixes" if self._mixes else "adds to"
        return f"{self.streams} parts that each sublayer {does} (hyper-connections)"

    @property
    def _mixes(self) -> bool:
        return self.mixing != "none"

    def layer_records(self, at: At, d_model: int, stream: Stream, block: Block) -> Iterator[Record]:
        """Of each sublayer: n·D -> (2 + n)·n factors, what is added to them, three gains; and the product that mixes.

        The product is of two activations and no attention core: it counts among all others that are exact.
        """
        mixed = {"streams": self.streams, "streams_out": self.streams, "D": d_model}
        made = (2 + self.streams * self._mixes) * self.streams
        for name in SUBLAYERS:
            if getattr(block, name) is not None:
                here = at.under(f"hyper_connections.{name}")
                yield from self._factors(here, d_model, stream, made, gains=2 + self._mixes)
                if self._mixes:
                    yield Matmul(f"{here.path}.mixing", {stream.rows.letters: stream.rows, **mixed}, here.times)

    def above(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """n·D -> n factors of the sum that goes on."""
        yield from self._factors(at.under("hyper_connections.above"), d_model, stream, self.streams, gains=1)

    def _factors(self, at: At, d_model: int, stream: Stream, factors: int, *, gains: int) -> Iterator[Record]:
        whole, made = {"streams": self.streams, "D": d_model}, {"factors": factors}
        yield from at.linear("factors", stream.rows, whole, made, bias=False)
        yield at.weight("added", made)
        yield at.weight("gains", {"gains": gains})
