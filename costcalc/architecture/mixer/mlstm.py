"""mLSTM, the matrix memory of xLSTM (arXiv 2405.04517, section 2.3), as in xLSTM-7B (2503.13427)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.component import Component, Flag, PositiveFloat, Size
from costcalc.architecture.mixer.state import StateDtype, recurrence
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record
from costcalc.units import several


class MLSTM(Component):
    """`heads`, each with a memory of qk_dim x v_dim, a normaliser of qk_dim and a running maximum.

    qk_dim, v_dim: numbers of one head. bias: on the projections and the norm; the input and forget gates always have
    one. gate_softcap: bound of what those two gates read; it changes no count. state_dtype: of all three states.
    """

    kind: Literal["mlstm"] = "mlstm"
    heads: Size
    qk_dim: Size
    v_dim: Size
    bias: Flag = False
    gate_softcap: PositiveFloat | None = None
    state_dtype: StateDtype = "fp32"

    def summary(self) -> str:
        """One line for a reader."""
        return f"mLSTM, {several(self.heads, 'head')} of {self.qk_dim:,} x {self.v_dim:,}"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """D -> q, k, v and three gates; C = f C + i v k^T and C q (equations 19 to 27); a norm; -> D."""
        rows, width, heads = stream.rows, {"D": d_model}, {"heads": self.heads}
        keys, values = {**heads, "key_dim": self.qk_dim}, {**heads, "value_dim": self.v_dim}
        for name, outputs in (("q", keys), ("k", keys), ("v", values), ("gate", values)):
            yield from at.linear(name, rows, width, outputs, bias=self.bias)
        for name in ("input_gate", "forget_gate"):
            yield from at.linear(name, rows, width, heads, bias=True)
        state = {**keys, "value_dim": self.v_dim}
        yield from recurrence(at, stream, "scan_update", "scan_read", axes=state)
        yield at.state("state", state, dtype=self.state_dtype)
        yield at.state("normalizer_state", keys, dtype=self.state_dtype)
        yield at.state("maximum_state", heads, dtype=self.state_dtype)
        yield at.weight("norm", values)
        if self.bias:
            yield at.weight("norm_bias", values)
        yield from at.linear("output", rows, values, width, bias=self.bias)
