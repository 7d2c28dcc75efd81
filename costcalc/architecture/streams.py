"""Streams of a text that look ahead (ProphetNet): how many the layers of a stack have, what may stand around them."""

from __future__ import annotations

from collections.abc import Sequence

from costcalc.architecture.attention import NGram
from costcalc.architecture.block import Block
from costcalc.architecture.component import RuleError, Where


def streams_ahead(blocks: Sequence[Block]) -> int:
    """Those beside the main one; 0 where no layer has any."""
    return max((block.attention.streams for block in blocks if isinstance(block.attention, NGram)), default=0)


def check_streams(blocks: Sequence[Block], *, is_plain: bool, where: Where) -> None:
    """Streams go through all layers, and begin with a learned row of the next position."""
    found = {block.attention.streams if isinstance(block.attention, NGram) else 0 for block in blocks}
    if found == {0}:
        return
    mixes = any(block.mixer is not None or block.mixer_beside is not None for block in blocks)
    if len(found) > 1 or mixes or not is_plain:
        message = "attention of the kind ngram is that of all layers, with as many streams, and learned positions"
        raise RuleError(message, (*where, "layers"), "write it in every layer, and nothing around the layers")
