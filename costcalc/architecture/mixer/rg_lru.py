"""RG-LRU, the real-gated linear recurrent unit of Griffin and RecurrentGemma (arXiv 2402.19427, section 2.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.component import Component, Rule, Size
from costcalc.architecture.feed_forward.activation import Activation
from costcalc.architecture.mixer.state import StateDtype, convolution, recurrence
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record
from costcalc.units import several

GATES = ("input_gate", "recurrence_gate")


class RGLRU(Component):
    """`width` channels with one number of state each, behind a convolution of `d_conv` taps and beside a gate.

    All products have biases. heads: equal blocks on the diagonal of the matrices of its two gates. activation: of the
    branch beside. state_dtype: of the state; the d_conv - 1 inputs kept for the convolution follow the cache.
    """

    kind: Literal["rg_lru"] = "rg_lru"
    width: Size
    heads: Size
    d_conv: Size = 4
    activation: Activation = "gelu_tanh"
    state_dtype: StateDtype = "fp32"

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Channels divide evenly among blocks; a convolution has something to keep."""
        yield (
            self.width % self.heads == 0,
            "width {width} is not a multiple of heads {heads}",
            "change `width`, or `heads`",
        )
        yield self.d_conv > 1, "`d_conv` is at least 2", "write how many tokens the convolution reads"

    def summary(self) -> str:
        """One line for a reader."""
        return f"RG-LRU, {self.width:,} channels in {several(self.heads, 'block')}, {self.d_conv} taps"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """D -> x and the branch beside, the convolution, gates, h = a h + sqrt(1 - a^2) (i x) (equation 4), -> D."""
        rows, width, inner = stream.rows, {"D": d_model}, {"d_inner": self.width}
        yield from at.linear("input", rows, width, inner, bias=True)
        yield from at.linear("gate", rows, width, inner, bias=True)
        yield from convolution(at, self.width, self.d_conv, bias=True, kept=self.d_conv - 1)
        part = self.width // self.heads
        for name in GATES:
            blocks = {"heads": self.heads, "block_in": part}
            yield from at.linear(name, rows, blocks, {"block_out": part}, bias=False)
            yield at.weight(f"{name}_bias", inner)
        yield at.weight("a", inner)
        yield from recurrence(at, stream, "scan_update", axes=inner)
        yield at.state("state", inner, dtype=self.state_dtype)
        yield from at.linear("output", rows, inner, width, bias=True)
