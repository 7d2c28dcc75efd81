"""The gated feed-forward network (arXiv 2002.05202): SwiGLU, GEGLU and their kin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.component import Component, Flag, Number, PositiveFloat, Rule, Share, Size
from costcalc.architecture.feed_forward.activation import NetworkActivation, activation_records
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record


class Gated(Component):
    """(activation(x W_gate) * x W_up) W_down: three matrices, each of d_model x d_ff.

    bias: on all three; out_bias: on the last alone (GTE).
    limit: the gate is bounded by it from above, the other factor from both sides; up_shift: what is added to that
    factor (gpt-oss). sparsity: the share of the gate's numbers that becomes 0, were they normal: the activation gets
    what is beyond so many deviations from their mean (Gemma-3n; arXiv 2506.06644). No count follows from these three.
    gate_cap, up_cap: tanh bounds silu's linear factor, and the other factor (Inkling-2); no count follows from them.
    out_gain: what comes out is multiplied by one learned number (Inkling).
    gains: d_ff numbers multiply the gate, and as many the other factor (nGPT, arXiv 2410.01131).
    inner_norm: of the d_ff numbers before W_down (BitNet b1.58, arXiv 2504.12285).
    """

    kind: Literal["gated"] = "gated"
    d_ff: Size
    activation: NetworkActivation = "silu"
    bias: Flag = False
    limit: PositiveFloat | None = None
    up_shift: Number = 0.0
    sparsity: Share = 0.0
    inner_norm: Norm | None = None
    gains: Flag = False
    out_bias: Flag = False
    gate_cap: PositiveFloat | None = None
    up_cap: PositiveFloat | None = None
    out_gain: Flag = False

    def rules(self, d_model: int) -> Iterator[Rule]:
        """One of the two says where biases are."""
        yield self.gate_cap is None or self.activation == "silu", "`gate_cap` bounds a factor of silu, and of no other"
        yield not (self.bias and self.out_bias), "`bias` has the last matrix's bias too: take `out_bias` out"

    def summary(self) -> str:
        """One line for a reader."""
        biases = ", biases" if self.bias else ", bias on the output" if self.out_bias else ""
        sparse = f", {100 * self.sparsity:g}% of the gate zero" if self.sparsity else ""
        normed = ", normed inside" if self.inner_norm is not None else ""
        return f"gated {self.activation}, {self.d_ff:,} wide{biases}{sparse}{normed}"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """D -> F twice and F -> D."""
        yield from at.linear("gate", stream.rows, {"D": d_model}, {"F": self.d_ff}, bias=self.bias)
        yield from at.linear("up", stream.rows, {"D": d_model}, {"F": self.d_ff}, bias=self.bias)
        for name in ("gate_gain", "up_gain") if self.gains else ():
            yield at.weight(name, {"F": self.d_ff})
        yield from activation_records(at, self.activation)
        if self.inner_norm is not None:
            yield from self.inner_norm.records(at, "inner_norm", {"F": self.d_ff})
        yield from at.linear("down", stream.rows, {"F": self.d_ff}, {"D": d_model}, bias=self.bias or self.out_bias)
        if self.out_gain:
            yield at.weight("out_gain", {"one": 1})
