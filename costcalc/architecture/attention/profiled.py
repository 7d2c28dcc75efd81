"""Attention whose scores know distances by profiles that each token mixes anew (Inkling: `InklingAttention`,
`Inkling2FullAttention`, `Inkling2SlidingAttention`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from costcalc.architecture.component import Component, Flag, PositiveFloat, Rule, Size
from costcalc.architecture.mixer.state import convolution
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record
from costcalc.units import several


class Profiled(Component):
    """`heads` query heads on `kv_heads` key/value heads of `head_dim`; keys and values are convolved over `taps`
    tokens.

    A bank of `profiles` says what is added to a score at each of `reach` distances; each query head mixes them by
    numbers that are made of its token. dynamic_taps: to the taps of a channel are added those that a token makes for
    each key/value head: that is no matrix product and states none. means: what a convolution gives, and what went in,
    is divided by the root of how many numbers are added up.

    head_norm: of each query and key head. limit: in its place, how long these are at most, and profile_limit what
    mixes profiles; queries and those have a gain for each number of each head before. v_norm: of each value head.
    sinks: a product of the token takes part in each head's softmax, and gets weight that goes to no value. output_gate:
    the outputs are multiplied by the sigmoid of another product. log_floor: from that many tokens on queries and what
    is added to scores grow by log_alpha times the logarithm. window: each query sees the latest `window` keys, itself
    included; None sees all. scale: what scores are multiplied by, None for 1 / sqrt(head_dim). Neither scale, limits
    nor logarithms change a count.
    """

    kind: Literal["profiled"] = "profiled"
    heads: Size
    kv_heads: Size
    head_dim: Size
    profiles: Size
    reach: Size
    taps: Size = 4
    dynamic_taps: Flag = False
    means: Flag = False
    window: Size | None = None
    head_norm: Norm | None = None
    limit: PositiveFloat | None = None
    profile_limit: PositiveFloat | None = None
    v_norm: Norm | None = None
    sinks: Flag = False
    output_gate: Flag = False
    log_floor: PositiveFloat | None = None
    log_alpha: PositiveFloat = 0.1
    scale: PositiveFloat | None = None
    chunk: ClassVar[None] = None
    cache_of: ClassVar[None] = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Heads divide evenly among key/value heads; lengths are either normed or limited."""
        yield (
            self.heads % self.kv_heads == 0,
            "heads {heads} is not a multiple of kv_heads {kv_heads}",
            "change one of the two",
        )
        yield (
            (self.limit is None) == (self.profile_limit is None),
            "`limit` and `profile_limit` go together",
            "write both, or take both out",
        )
        yield self.limit is None or self.head_norm is None, "`limit` stands in place of a `head_norm`", "take one out"

    def rotated(self, d_model: int) -> int:
        """Numbers of a head that rotary positions would turn."""
        del d_model
        return self.head_dim

    def sizes(self, d_model: int) -> tuple[int, int]:
        """(kv_heads, head_dim)."""
        del d_model
        return self.kv_heads, self.head_dim

    def left_out(self, d_model: int) -> dict[str, tuple[Any, str]]:
        """The scale of scores."""
        return {"scale": (self.head_dim**-0.5, "1 / sqrt(head_dim)")}

    def summary(self, d_model: int) -> str:
        """One line for a reader."""
        del d_model
        heads = f"{several(self.heads, 'query head')} on {several(self.kv_heads, 'key/value head')} of {self.head_dim}"
        window = "" if self.window is None else f", window {self.window:,}"
        taps = f"{self.taps} {'own taps of each token' if self.dynamic_taps else 'taps'}"
        more = ", sinks" * self.sinks + ", output gate per channel" * self.output_gate
        return (
            f"{heads}, keys and values over {taps}, {self.profiles} profiles of {self.reach:,} distances{window}{more}"
        )

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Projections, convolutions, profiles, scores and values over the pairs, the cache, gate and output."""
        width, queries = {"D": d_model}, {"N": self.heads, "H": self.head_dim}
        keys = {"K": self.kv_heads, "H": self.head_dim}
        yield from at.linear("q", stream.rows, width, queries, bias=False)
        for name in ("k", "v"):
            yield from at.linear(name, stream.rows, width, keys, bias=False)
            yield from self._convolution(at.under(f"{name}_conv"), d_model, stream)
        yield from self._lengths(at, queries)
        mixed, bank = {"N": self.heads, "profiles": self.profiles}, {"profiles": self.profiles, "reach": self.reach}
        yield from at.linear("profiles", stream.rows, width, mixed, bias=False)
        yield at.weight("bank", bank)
        yield at.product("bank", {stream.rows.letters: stream.rows, **mixed, "reach": self.reach})
        if self.sinks:
            yield from at.linear("sinks", stream.rows, width, {"N": self.heads}, bias=False)
        pairs = stream.pairs(self.window, None)
        yield at.core("scores", {pairs.letters: pairs, **queries})
        yield at.core("values", {pairs.letters: pairs, **queries})
        if stream.held is not None:
            held = stream.held(self.window, None)
            for name in ("k_cache", "v_cache"):
                yield at.cached(name, {held.letters: held, **keys}, kind=stream.cache)
        if self.output_gate:
            yield from at.linear("gate", stream.rows, width, queries, bias=False)
        yield from at.linear("output", stream.rows, queries, width, bias=False)

    def _lengths(self, at: At, queries: dict[str, int]) -> Iterator[Record]:
        """Norms, or gains where lengths are limited."""
        for name, part in (("q_norm", self.head_norm), ("k_norm", self.head_norm), ("v_norm", self.v_norm)):
            if part is not None:
                yield from part.records(at, name, {"H": self.head_dim})
        if self.limit is not None:
            yield at.weight("q_scale", queries)
            yield at.weight("profiles_scale", {"N": self.heads, "profiles": self.profiles})

    def _convolution(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """K·H channels x taps; with taps of each token those of the channels, and D -> K x taps."""
        channels = self.kv_heads * self.head_dim
        if not self.dynamic_taps:
            yield from convolution(at, channels, self.taps, bias=False)
            return
        yield at.weight("static", {"channels": channels, "taps": self.taps})
        of_token = {"K": self.kv_heads, "taps": self.taps}
        yield from at.linear("dynamic", stream.rows, {"D": d_model}, of_token, bias=False)
        yield at.state("conv_state", {"channels": channels, "taps": self.taps})
