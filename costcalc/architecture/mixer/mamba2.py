"""Mamba-2, structured state space duality (arXiv 2405.21060, sections 6 and 7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.component import Component, Flag, Rule, Size
from costcalc.architecture.feed_forward.activation import Activation
from costcalc.architecture.mixer.state import StateDtype, chunked, convolution, recurrence
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record
from costcalc.units import several


class Mamba2(Component):
    """`heads` of `head_dim` channels, each head with head_dim x d_state numbers and one decay for all of them.

    groups: heads of one group share what enters and leaves their states. d_conv: taps of the convolution before.
    bias: on the projection in. out_bias: on that out. conv_bias: on the convolution. gated_norm: an RMS norm in front
    of the projection out (Falcon-H1 has none); norm_before_gate: the norm comes before the gate; it changes no count.
    chunk: tokens that kernels take at once. state_dtype: of the state; the inputs kept for the convolution follow the
    cache.
    """

    kind: Literal["mamba2"] = "mamba2"
    heads: Size
    head_dim: Size
    d_state: Size = 128
    groups: Size = 1
    d_conv: Size = 4
    conv_bias: Flag = True
    bias: Flag = False
    out_bias: Flag = False
    gated_norm: Flag = True
    norm_before_gate: Flag = False
    chunk: Size = 256
    activation: Activation = "silu"
    state_dtype: StateDtype = "fp32"

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Heads divide evenly among groups."""
        yield (
            self.heads % self.groups == 0,
            "heads {heads} is not a multiple of groups {groups}",
            "change `heads`, or `groups`",
        )
        yield (
            self.gated_norm or not self.norm_before_gate,
            "`norm_before_gate` needs the `gated_norm`",
            "take one of the two out",
        )

    def summary(self) -> str:
        """One line for a reader."""
        groups = "" if self.groups == 1 else f" in {several(self.groups, 'group')}"
        size = f"{self.head_dim:,} channels of {several(self.d_state, 'state')}"
        return f"Mamba-2, {several(self.heads, 'head')}{groups} of {size}, {self.d_conv} taps"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """D -> z, x, B, C, dt; h = a h + B x^T and y = C h of each head (equation 16); -> D.

        In chunks: C B^T and its product with x inside of each, B x^T of it, C with the state before it (listing 1).
        """
        width, d_inner = {"D": d_model}, self.heads * self.head_dim
        inner, entering = {"d_inner": d_inner}, 2 * self.groups * self.d_state
        heads, of_key = {"heads": self.heads}, {"heads": self.heads, "d_state": self.d_state}
        of_value = {"heads": self.heads, "head_dim": self.head_dim}
        of_state = {**of_value, "d_state": self.d_state}
        entered = {"entered": 2 * d_inner + entering + self.heads}
        yield from at.linear("input", stream.rows, width, entered, bias=self.bias)
        yield from convolution(at, d_inner + entering, self.d_conv, bias=self.conv_bias)
        yield at.weight("dt_bias", heads)
        yield at.weight("a_log", heads)
        yield at.weight("d", heads)
        yield from recurrence(at, stream, "scan_update", "scan_read", axes=of_state, form="recurrent")
        among = {"chunk": self.chunk}
        products = {"scan_scores": {**among, **of_key}, "scan_values": {**among, **of_value}}
        yield from chunked(at, self.chunk, {**products, "scan_update": of_state, "scan_read": of_state})
        yield at.state("state", of_state, dtype=self.state_dtype)
        if self.gated_norm:
            yield at.weight("norm", inner)
        yield from at.linear("output", stream.rows, inner, width, bias=self.out_bias)
