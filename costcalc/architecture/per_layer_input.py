"""Per-layer inputs (Gemma-3n, Gemma-4): each layer adds something of its own embedding of each token."""

from __future__ import annotations

from collections.abc import Iterator

from costcalc.architecture.component import Component, Size
from costcalc.architecture.feed_forward.activation import Activation
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record


class PerLayerInput(Component):
    """`width` numbers for each token and each layer, as `Gemma3nTextModel` and `Gemma4TextModel` make them.

    One table of `vocab_size` rows holds those of all layers beside each other; to what is looked up a product of the
    embeddings is added, normed in parts of `width`. In each layer, behind its sublayers, a gate D -> width reads the
    residual stream; its activation times the layer's own numbers goes through width -> D and a norm, and is added. With
    AltUp the corrected active state is read, and the result is added to all but the first. Tokens beyond the table have
    its first row.
    """

    vocab_size: Size
    width: Size
    activation: Activation = "gelu_tanh"

    def summary(self) -> str:
        """One line for a reader."""
        return f"{self.width:,} numbers in each layer, of a table of {self.vocab_size:,} rows"

    def below(self, at: At, d_model: int, stream: Stream, norm: Norm, *, layers: int) -> Iterator[Record]:
        """The table and the projection, once for all layers; the norm of one layer's part."""
        here, each = at.under("per_layer_input"), {"layers": layers, "W_own": self.width}
        yield here.weight("embedding", {"V_own": self.vocab_size, **each}, table=True)
        yield from here.linear("projection", stream.rows, {"D": d_model}, each, bias=False)
        yield from norm.records(at, "per_layer_input_norm", {"W_own": self.width})

    def layer_records(self, at: At, d_model: int, stream: Stream, norm: Norm) -> Iterator[Record]:
        """Of one layer: the gate, the projection, and the norm of what is added."""
        here, width, own = at.under("per_layer_input"), {"D": d_model}, {"W_own": self.width}
        yield from here.linear("gate", stream.rows, width, own, bias=False)
        yield from here.linear("projection", stream.rows, own, width, bias=False)
        yield from norm.records(at, "per_layer_input_norm", width)
