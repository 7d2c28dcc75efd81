"""Residuals by attention over blocks of layers (Inkling-2: `Inkling2BlockAttentionResidual`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from costcalc.architecture.attention import Profiled
from costcalc.architecture.component import Component, Flag, Rule, Size, Whole
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Cached, Extent, Matmul, Record

if TYPE_CHECKING:
    from costcalc.architecture.block import Block


class RunAgain(Component):
    """Layers beside each other run `passes` times, each pass with a cache of its own (`Inkling2LoopTextModel`).

    Each pass begins with what came before the first. What the one before it left is a message: a weighted mean of
    `sources` for what each of queries, keys, values and the network is made of. Two gates of `rank`, made of both
    together, say what of the numbers is forgotten and what of the message is added.
    """

    passes: Size
    sources: Size
    rank: Size

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Four queries and the means, and four times 2·D -> rank -> D twice, in all passes but the first."""
        asked = {"queries": len(MESSAGES), "D": d_model}
        rows: dict[str, int | Extent] = {stream.rows.letters: stream.rows, "passes": self.passes - 1}
        yield at.weight("query", asked)
        if self.passes > 1:
            axes: dict[str, int | Extent] = {**rows, "sources": self.sources, **asked}
            yield at.product("query", axes)
            yield Matmul(f"{at.path}.means", axes, at.times)
        for name in MESSAGES:
            here = at.under(name)
            for part, sizes in (
                ("down", {"D_both": 2 * d_model, "rank": self.rank}),
                ("forget", {"rank": self.rank, "D": d_model}),
                ("add", {"rank": self.rank, "D": d_model}),
            ):
                yield here.weight(part, sizes)
                if self.passes > 1:
                    yield here.product(part, {**rows, **sizes})


MESSAGES = ("q", "k", "v", "feed_forward")
"""What is made of a message."""


class BlockResiduals(Component):
    """A sublayer reads a weighted mean of the stream and of what earlier blocks of layers left, by a softmax.

    Their scores are products with a learned query of d_model numbers, of all of them at length 1 in the mean square.
    sources: blocks that are finished before this layer. starts_block: the stream that comes in is finished with it: the
    attention's output begins the next block, and what follows finds one source more. inputs: queries of the attention,
    "one" for all of its input, or "three", for what queries, keys and values are made of, each with a norm of its own.
    The first layer, before which nothing is finished, reads the stream itself in front of its attention. loop: the
    layer runs several times, with all others beside it that do (Inkling-2 Mini).
    """

    sources: Whole
    starts_block: Flag = False
    inputs: Literal["one", "three"] = "one"
    loop: RunAgain | None = None

    @property
    def is_first(self) -> bool:
        """Whether there is nothing to choose from yet."""
        return self.sources == 0 and self.starts_block

    def records(self, at: At, d_model: int, stream: Stream, norm: Norm) -> Iterator[Record]:
        """The queries of both sublayers, their products with the sources, and the means; two norms more of three."""
        here, queries = at.under("block_residuals"), 3 if self.inputs == "three" else 1
        if not self.is_first:
            yield from chosen(here, "attention", d_model, stream, sources=self.sources + 1, queries=queries)
        for name in ("keys", "values") if self.inputs == "three" else ():
            yield from norm.records(at, f"attention_{name}_norm", {"D": d_model})
        yield from chosen(here, "feed_forward", d_model, stream, sources=self.sources + self.starts_block + 1)


def chosen(at: At, name: str, d_model: int, stream: Stream, *, sources: int, queries: int = 1) -> Iterator[Record]:
    """Scores with learned queries, and weighted means: two products that are no attention core."""
    here, asked = at.under(name), {"queries": queries, "D": d_model}
    axes: dict[str, int | Extent] = {stream.rows.letters: stream.rows, "sources": sources, **asked}
    yield here.weight("query", asked)
    yield here.product("query", axes)
    yield Matmul(f"{here.path}.means", axes, here.times)


def rules_of_residuals(block: Block) -> Iterator[Rule]:
    """They stand in place of sums, and a convolution behind a sublayer: both want plain sublayers with norms before."""
    one_by_one = block.norms == "pre" and not block.parallel and block.cross_attention is None
    said = "`output_conv` goes with `norms: pre`, and sublayers one after another"
    yield block.output_conv is None or one_by_one, said, "take it out"
    if block.block_residuals is None:
        return
    both = isinstance(block.attention, Profiled) and block.feed_forward is not None
    yield both, "`block_residuals` are for a layer with `profiled` attention and a `feed_forward`"
    sums = (block.residual_affine, block.sublayer_gates, block.layer_scale, block.share_weights, block.residual_mean)
    parts = (block.mixer_beside, block.augmented_residual, block.feed_forward_beside, block.norm_gate, block.shortcut)
    plain = one_by_one and block.attention_norm and block.residual_scale == 1 and not any(sums)
    plain = plain and all(part is None for part in parts)
    yield plain, "`block_residuals` go with `norms: pre`, and nothing else that changes sums"


def repeated(block: Block, records: Iterator[Record], at: At) -> Iterator[Record]:
    """The records of a layer, and for each further pass its products and what they hold, of the same weights."""
    loop = None if block.block_residuals is None else block.block_residuals.loop
    made = list(records)
    yield from made
    for number in range(1, 1 if loop is None else loop.passes):
        for record in made:
            path = record.path.replace(at.path, f"{at.path}.pass_{number}", 1)
            if isinstance(record, Matmul | Cached):
                yield record._replace(path=path)
