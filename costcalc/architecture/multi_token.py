"""Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): layers beside the model, in no total."""

from __future__ import annotations

from collections.abc import Iterator

from costcalc.architecture.attention import Latent
from costcalc.architecture.block import Block
from costcalc.architecture.component import Component, Flag, RuleError, Size, Where
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import DECODER, At
from costcalc.architecture.positions import has_one_table
from costcalc.inventory import Record, Weight


class MultiToken(Component):
    """`repeat` modules, each of which predicts one token further on; a checkpoint holds them beside the model.

    A module joins the hidden states with the next token's embedding: a norm of each, a matrix 2D -> D, one layer, and a
    norm before the head. own_tables: it holds a vocabulary table and a head of its own (copies, in published files).
    """

    repeat: Size = 1
    norm: Norm
    own_tables: Flag = False
    layer: Block

    def check(self, where: Where, d_model: int) -> None:
        """The layer's rules; one layer a module, without neighbours."""
        self.layer.check((*where, "layer"), d_model)
        attention = self.layer.attention
        chooses = not isinstance(attention, Latent) or attention.top_k is None or attention.indexer is not None
        alone = chooses and (attention is None or attention.cache_of is None)
        for holds, key in ((self.layer.repeat == 1, "repeat"), (not self.layer.share_weights, "share_weights")):
            if not holds:
                raise RuleError(
                    "a module has one layer", (*where, "layer", key), "`repeat` of `multi_token` says how many"
                )
        positions = self.layer.positions
        if positions.added or has_one_table(positions):
            message = f"a module adds no {positions.kind} positions of its own"
            raise RuleError(message, (*where, "layer", "positions"), "write `rope` or `none`")
        alone = alone and self.layer.shortcut is None
        if not alone or self.layer.cross_attention is not None:
            raise RuleError("a module has no other layers to look at", (*where, "layer"), "take it out")

    def records(self, d_model: int, *, vocab_size: int) -> Iterator[Record]:
        """What the modules hold, all of it extra: no pass that is counted runs them."""
        at, width = At("multi_token", self.repeat), {"D": d_model}
        for record in self._stated(at, d_model, width, vocab_size):
            if isinstance(record, Weight):
                yield record._replace(role="extra", used=None)

    def _stated(self, at: At, d_model: int, width: dict[str, int], vocab_size: int) -> Iterator[Record]:
        if self.own_tables:
            yield at.weight("embedding", {"V": vocab_size, **width}, table=True)
        yield from self.norm.records(at, "hidden_norm", width)
        yield from self.norm.records(at, "embedding_norm", width)
        yield at.weight("projection", {"joined": 2 * d_model, **width})
        yield from self.layer.records(at.under("layer"), d_model, DECODER)
        yield from self.norm.records(at, "final_norm", width)
        if self.own_tables:
            yield at.weight("head", {"V": vocab_size, **width}, table=True)
