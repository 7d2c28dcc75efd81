"""Gated delta rule: Gated DeltaNet (arXiv 2412.06464) and Kimi Delta Attention (2510.26692)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from costcalc.architecture.component import Component, Flag, Number, Rule, Size
from costcalc.architecture.feed_forward.activation import Activation
from costcalc.architecture.mixer.state import StateDtype, chunked, convolution, recurrence
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record
from costcalc.units import several

PRODUCTS = ("scan_recall", "scan_update", "scan_read")
"""S^T k, what it holds of the key already; S + k (difference)^T; S^T q."""


class GatedDelta(Component):
    """`heads` value heads, each with a state of key_dim x value_dim that decays and is corrected by each token.

    key_heads: None means as many as heads; each serves heads / key_heads value heads. key_dim: numbers of a key head.
    value_dim: of a value head. d_conv: taps of the convolution of queries, keys and values. decay: one number
    "per_head" (Gated DeltaNet) or "per_channel" of its keys (Kimi); decay_rank: through a product of this rank.
    gate_rank: the same for the gate of the output, whose norm has value_dim gains for all heads. activation: of
    queries, keys and values; gate_activation: of that gate; double_beta: corrections of twice the size; decay_floor:
    the logarithm of the decay is this times a sigmoid (Ling-3). No count follows from these five. chunk: tokens that
    kernels take at once. state_dtype: of the state; the inputs kept for the convolution follow the cache.
    """

    kind: Literal["gated_delta"] = "gated_delta"
    heads: Size
    key_heads: Size | None = None
    key_dim: Size
    value_dim: Size
    d_conv: Size = 4
    conv_bias: Flag = False
    decay: Literal["per_head", "per_channel"] = "per_head"
    decay_rank: Size | None = None
    gate_rank: Size | None = None
    activation: Activation = "silu"
    gate_activation: Literal["silu", "sigmoid"] = "silu"
    double_beta: Flag = False
    decay_floor: Number | None = None
    chunk: Size = 64
    state_dtype: StateDtype = "fp32"

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Value heads divide evenly among key heads."""
        if self.key_heads is not None:
            message = "heads {heads} is not a multiple of key_heads {key_heads}"
            yield self.heads % self.key_heads == 0, message, "change `heads`, or `key_heads`"
            yield (
                self.decay == "per_head" or self.key_heads == self.heads,
                "`decay: per_channel` is for as many key heads as heads",
                "leave `key_heads` out",
            )
        has_channels = self.decay == "per_channel" or self.decay_rank is None
        yield has_channels, "`decay_rank` goes with `decay: per_channel`", "write that, or take `decay_rank` out"
        below = self.decay_floor is None or self.decay_floor < 0
        yield below, "`decay_floor` is the lowest logarithm of a decay: below 0", "write `decay_floor: -5.0`"

    def left_out(self, d_model: int) -> dict[str, tuple[Any, str]]:
        """As many key heads as heads."""
        return {"key_heads": (self.heads, "heads")}

    def summary(self) -> str:
        """One line for a reader."""
        keys = "" if self.key_heads is None else f" on {several(self.key_heads, 'key head')}"
        state = f"{self.key_dim:,} x {self.value_dim:,}"
        decay = self.decay.replace("_", " ")
        return f"gated delta rule, {several(self.heads, 'head')}{keys} of {state}, decay {decay}, {self.d_conv} taps"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Projections and gates, the convolution, S = a S (I - b k k^T) + b k v^T and S^T q (equation 10), -> D."""
        rows, width = stream.rows, {"D": d_model}
        key_heads = self.heads if self.key_heads is None else self.key_heads
        keys, values = {"key_heads": key_heads, "key_dim": self.key_dim}, self._of_value
        yield from at.linear("q", rows, width, keys, bias=False)
        yield from at.linear("k", rows, width, keys, bias=False)
        yield from at.linear("v", rows, width, values, bias=False)
        yield from _low_rank(at, "gate", stream, width, values, self.gate_rank)
        yield from at.linear("beta", rows, width, {"heads": self.heads}, bias=False)
        decays = {"heads": self.heads} if self.decay == "per_head" else self._of_key
        yield from _low_rank(at, "decay", stream, width, decays, self.decay_rank)
        yield at.weight("dt_bias", decays)
        yield at.weight("a_log", {"heads": self.heads})
        channels = 2 * key_heads * self.key_dim + self.heads * self.value_dim
        yield from convolution(at, channels, self.d_conv, bias=self.conv_bias)
        yield from self._scan(at, stream)
        yield at.weight("norm", {"value_dim": self.value_dim})
        yield from at.linear("output", rows, values, width, bias=False)

    @property
    def _of_key(self) -> dict[str, int]:
        return {"heads": self.heads, "key_dim": self.key_dim}

    @property
    def _of_value(self) -> dict[str, int]:
        return {"heads": self.heads, "value_dim": self.value_dim}

    def _scan(self, at: At, stream: Stream) -> Iterator[Record]:
        """The recurrence; or its WY form in chunks: k k^T, what solves it for keys and values, q k^T and its values."""
        state = {**self._of_key, "value_dim": self.value_dim}
        yield from recurrence(at, stream, *PRODUCTS, axes=state, form="recurrent")
        key, value = {"chunk": self.chunk, **self._of_key}, {"chunk": self.chunk, **self._of_value}
        inside = {"scan_overlaps": key, "scan_solved_keys": key, "scan_solved_values": value}
        looked = {"scan_scores": key, "scan_values": value}
        yield from chunked(at, self.chunk, {**inside, **looked, **dict.fromkeys(PRODUCTS, state)})
        yield at.state("state", state, dtype=self.state_dtype)


def _low_rank(
    at: At, name: str, stream: Stream, inputs: dict[str, int], outputs: dict[str, int], rank: int | None
) -> Iterator[Record]:
    """One product, or two with `rank` numbers between them."""
    if rank is None:
        yield from at.linear(name, stream.rows, inputs, outputs, bias=False)
        return
    yield from at.linear(f"{name}_down", stream.rows, inputs, {"rank": rank}, bias=False)
    yield from at.linear(f"{name}_up", stream.rows, {"rank": rank}, outputs, bias=False)
