"""Lightning attention (arXiv 2401.04658), as in MiniMax-01 (2501.08313, section 2.2.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.component import Component, Size
from costcalc.architecture.feed_forward.activation import Activation
from costcalc.architecture.mixer.state import StateDtype, chunked, recurrence
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record
from costcalc.units import several


class Lightning(Component):
    """Linear attention of `heads` of `head_dim`, whose state decays by a fixed slope of each head.

    The outputs of all heads have one RMS norm and a sigmoid gate. activation: of queries, keys and values. chunk:
    tokens that kernels take at once, the last of them as many as there are. state_dtype: of the state.
    """

    kind: Literal["lightning"] = "lightning"
    heads: Size
    head_dim: Size
    chunk: Size = 256
    activation: Activation = "silu"
    state_dtype: StateDtype = "fp32"

    def summary(self) -> str:
        """One line for a reader."""
        return f"lightning attention, {several(self.heads, 'head')} of {self.head_dim:,}"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """D -> q, k, v and a gate; S = a S + k v^T and S^T q; a norm; -> D.

        Chunk by chunk: q k^T and its values inside a chunk, k v^T of it, q with the state before it.
        """
        rows, width, of_head = stream.rows, {"D": d_model}, {"heads": self.heads, "head_dim": self.head_dim}
        for name in ("q", "k", "v", "gate"):
            yield from at.linear(name, rows, width, of_head, bias=False)
        state = {"heads": self.heads, "key_dim": self.head_dim, "value_dim": self.head_dim}
        yield from recurrence(at, stream, "scan_update", "scan_read", axes=state, form="recurrent")
        inside = {"chunk": self.chunk, **of_head}
        products = {"scan_scores": inside, "scan_values": inside, "scan_update": state, "scan_read": state}
        yield from chunked(at, self.chunk, products, padded=False)
        yield at.state("state", state, dtype=self.state_dtype)
        yield at.weight("norm", of_head)
        yield from at.linear("output", rows, of_head, width, bias=False)
