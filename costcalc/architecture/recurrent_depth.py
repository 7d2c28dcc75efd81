"""Layers that a token passes several times: two modules that take turns, or a part of a stack that starts over.

The layers stand in the stack as often as they run, with `share_weights`; here is what happens between their turns.
"""

from __future__ import annotations

from collections.abc import Iterator

from costcalc.architecture.component import Component, Rule, Size, Whole
from costcalc.architecture.places import At
from costcalc.inventory import Record


class Hierarchy(Component):
    """A low and a high module take turns (arXiv 2506.21734; `HrmTextModel`): `low_turns` of `low` layers, then one of
    `high` layers, and again, to the end of the stack.

    Each module has a state. A turn of either reads the sum of both, and what it gives, normed, is its state from then
    on. The high one starts as the embeddings, the low one as D numbers that are held and not trained.
    """

    low: Size
    high: Size
    low_turns: Size = 1

    def rules_of(self, depth: int) -> Iterator[Rule]:
        """Whole rounds of turns."""
        whole = self.low * self.low_turns + self.high
        yield (
            depth % whole == 0,
            f"{depth} layers are no whole number of rounds of {whole}",
            "write layers as often as they run",
        )

    def records(self, at: At, d_model: int) -> Iterator[Record]:
        """The start of the low module's state."""
        yield at.weight("low_start", {"D": d_model}, role="frozen")


class Loop(Component):
    """`turns` turns of `layers` layers behind the first `before` (`DoryModel`), which all start from what those give.

    In front of each turn, what the stack has come to is normed, and the normed result of the first layers is added.
    """

    before: Whole = 0
    layers: Size
    turns: Size

    def rules_of(self, depth: int) -> Iterator[Rule]:
        """The turns are within the stack."""
        needed = self.before + self.layers * self.turns
        yield depth >= needed, f"{depth} layers, but the loop ends at {needed}", "write layers as often as they run"
