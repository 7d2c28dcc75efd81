"""What the layers of an encoder are handed beside its text: tokens that fill up blocks, and learned rows."""

from __future__ import annotations

from collections.abc import Sequence

from costcalc.architecture.attention import Attention, GlobalLocal, Local, OfText
from costcalc.architecture.component import Component, RuleError, Size, Where, Whole
from costcalc.architecture.places import Stream
from costcalc.architecture.positions import Positions, RelativePositions


class Padding(Component):
    """The text is filled up to a multiple of `multiple` tokens, if it is longer than `beyond`.

    What is filled in means nothing, and counts only in what kernels are handed (counting="rectangle").
    """

    multiple: Size
    beyond: Whole = 0

    def summary(self) -> str:
        """One line for a reader."""
        longer = f" beyond {self.beyond:,}" if self.beyond else ""
        return f"filled up to a multiple of {self.multiple:,} tokens{longer}, for kernels only"


def handed(stream: Stream, padding: Padding | None, global_tokens: int | None) -> Stream:
    """The stream as the layers of a stack have it."""
    if padding is None and global_tokens is None:
        return stream
    multiple, beyond = (1, 0) if padding is None else (padding.multiple, padding.beyond)
    return stream.handed(multiple=multiple, beyond=beyond, more=global_tokens or 0)


def check_text(
    where: Where,
    attentions: Sequence[Attention | None],
    positions: Positions,
    *,
    padding: Padding | None,
    global_tokens: int | None,
) -> None:
    """Raise `RuleError` for what goes beside a text where a stack's layers have no attention that knows of it."""
    if padding is not None and not all(isinstance(each, OfText) for each in attentions):
        message = "`padding` is for layers whose attention is of whole texts"
        raise RuleError(message, (*where, "padding"), "take it out")
    has_sums = any(isinstance(each, Local) and each.summed is not None for each in attentions)
    if isinstance(positions, RelativePositions) and positions.of_sums and not has_sums:
        message = "`of_sums` is for layers whose attention has sums of blocks"
        raise RuleError(message, (*where, "positions", "of_sums"), "take it out")
    if any(isinstance(each, GlobalLocal) != (global_tokens is not None) for each in attentions):
        message = "`global_tokens` and attention of the kind global_local need each other, in all layers"
        raise RuleError(message, (*where, "layers"), "write `global_tokens: 32` on the stack, or take it out")
