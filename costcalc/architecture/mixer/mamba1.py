"""Mamba, a selective state space (arXiv 2312.00752, section 3.4 and algorithm 2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator

from costcalc.architecture.component import Component, Flag, Rule, Size, no_number
from costcalc.architecture.feed_forward.activation import Activation
from costcalc.architecture.mixer.state import StateDtype, convolution, recurrence
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record
from costcalc.units import several


class Mamba1(Component):
    """`d_inner` channels, each with a state of `d_state` numbers that the input itself chooses what to write into.

    d_conv: taps of the convolution before. dt_rank: rank of the product that gives each channel its step size.
    bias: on the projections in and out; conv_bias: on the convolution. inner_norms: RMS norms of the step size and of
    what enters and leaves the state (Jamba, arXiv 2403.19887), "without_gain" where they hold nothing (Falcon-Mamba).
    heads: step sizes, and what enters and leaves, are chosen by as many equal parts of the channels, each of its own
    (Zamba, arXiv 2405.16712). state_dtype: of the state; the inputs kept for the convolution follow the cache.
    """

    kind: Literal["mamba1"] = "mamba1"
    d_inner: Size
    d_state: Size = 16
    d_conv: Size = 4
    dt_rank: Size
    conv_bias: Flag = True
    bias: Flag = False
    inner_norms: Annotated[Literal[False, True, "without_gain"], BeforeValidator(no_number)] = False
    heads: Size = 1
    activation: Activation = "silu"
    state_dtype: StateDtype = "fp32"

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Channels divide evenly among heads."""
        yield (
            self.d_inner % self.heads == 0,
            "d_inner {d_inner} is not a multiple of heads {heads}",
            "change `d_inner`, or `heads`",
        )

    def summary(self) -> str:
        """One line for a reader."""
        heads = "" if self.heads == 1 else f" in {several(self.heads, 'head')}"
        return f"Mamba, {self.d_inner:,} channels{heads} of {several(self.d_state, 'state')}, {self.d_conv} taps"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """D -> 2 d_inner; what is selected of each token; h = exp(dt A) h + dt B x and y = C h (equation 2); -> D."""
        rows, width, inner = stream.rows, {"D": d_model}, {"d_inner": self.d_inner}
        part = self.d_inner // self.heads
        chosen = {"selected": self.dt_rank + 2 * self.d_state}
        yield from at.linear("input", rows, width, {"entered": 2 * self.d_inner}, bias=self.bias)
        yield from convolution(at, self.d_inner, self.d_conv, bias=self.conv_bias)
        yield from at.linear("selection", rows, {"heads": self.heads, "block_in": part}, chosen, bias=False)
        if self.inner_norms is True:
            yield at.weight("dt_norm", {"dt_rank": self.dt_rank})
            yield at.weight("b_norm", {"d_state": self.d_state})
            yield at.weight("c_norm", {"d_state": self.d_state})
        yield from at.linear(
            "dt", rows, {"heads": self.heads, "dt_rank": self.dt_rank}, {"block_out": part}, bias=False
        )
        yield at.weight("dt_bias", inner)
        of_state = {**inner, "d_state": self.d_state}
        yield at.weight("a_log", of_state)
        yield at.weight("d", inner)
        yield from recurrence(at, stream, "scan_update", "scan_read", axes=of_state)
        yield at.state("state", of_state, dtype=self.state_dtype)
        yield from at.linear("output", rows, inner, width, bias=self.bias)
