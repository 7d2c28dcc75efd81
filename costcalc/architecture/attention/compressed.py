"""DeepSeek-V4's attention (`DeepseekV4Attention`): a window of tokens, and behind it entries that stand for many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from costcalc.architecture.attention.compression import Compression
from costcalc.architecture.component import Component, Flag, PositiveFloat, Rule, Size
from costcalc.architecture.norm import Norm, RMSNorm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record
from costcalc.units import several


class Compressed(Component):
    """`heads` query heads on one array of `head_dim` numbers a token, which is its key and its value.

    Queries are made of a latent of `q_rank` numbers, and made 1 long in the mean square, head by head. Each sees the
    latest `window` tokens, itself included, and the entries of a `compression`, where there is one. A learned number
    of each head takes part in its softmax. What a value brings with it of its position is turned back. The heads'
    outputs go through a matrix of each of out_groups groups to out_rank numbers, and all of those through one more.
    norm: of the latent, of keys, and of entries. held_twice: a token's numbers are held as its key and once more as its
    value (the library's cache, in layers without entries). scale: what scores are multiplied by, None for
    1 / sqrt(head_dim); it changes no count.
    """

    kind: Literal["compressed"] = "compressed"
    heads: Size
    head_dim: Size
    q_rank: Size
    window: Size
    out_groups: Size
    out_rank: Size
    compression: Compression | None = None
    norm: Norm = RMSNorm()
    held_twice: Flag = False
    scale: PositiveFloat | None = None
    chunk: ClassVar[None] = None
    cache_of: ClassVar[None] = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """The heads' numbers divide evenly among the groups of the output."""
        yield (
            self.heads * self.head_dim % self.out_groups == 0,
            "heads {heads} x head_dim {head_dim} is not a multiple of out_groups {out_groups}",
            "change one of them",
        )

    def rotated(self, d_model: int) -> int:
        """Numbers of a head that rotary positions turn."""
        del d_model
        return self.head_dim

    def sizes(self, d_model: int) -> tuple[int, int]:
        """(kv_heads, head_dim)."""
        del d_model
        return 1, self.head_dim

    def left_out(self, d_model: int) -> dict[str, tuple[Any, str]]:
        """The scale of scores."""
        return {"scale": (self.head_dim**-0.5, "1 / sqrt(head_dim)")}

    def summary(self, d_model: int) -> str:
        """One line for a reader."""
        del d_model
        heads = f"{several(self.heads, 'query head')} of {self.head_dim} on one array of keys and values"
        entries = "" if self.compression is None else f", {self.compression.summary()}"
        return f"{heads}, window {self.window:,}{entries}, output of rank {self.out_groups} x {self.out_rank:,}"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Queries, keys that are values, scores and values over tokens and over entries, the output's two steps."""
        width, latent, queries = {"D": d_model}, {"R_q": self.q_rank}, {"N": self.heads, "H": self.head_dim}
        numbers = {"H": self.head_dim}
        yield from at.linear("q_down", stream.rows, width, latent, bias=False)
        yield from self.norm.records(at, "q_norm", latent)
        yield from at.linear("q_up", stream.rows, latent, queries, bias=False)
        yield from at.linear("kv", stream.rows, width, numbers, bias=False)
        yield from self.norm.records(at, "kv_norm", numbers)
        yield at.weight("sinks", {"N": self.heads})
        pairs = stream.pairs(self.window, None)
        yield at.core("scores", {pairs.letters: pairs, **queries})
        yield at.core("values", {pairs.letters: pairs, **queries})
        if stream.held is not None:
            held = stream.held(self.window, None)
            for name in ("k_cache", "v_cache") if self.held_twice else ("kv_cache",):
                yield at.cached(name, {held.letters: held, **numbers}, kind=stream.cache)
        if self.compression is not None:
            there, met = at.under("compression"), self.compression.pairs()
            sizes = {"head_dim": self.head_dim, "q_rank": self.q_rank}
            yield from self.compression.records(there, d_model, stream, norm=self.norm, **sizes)
            yield there.core("scores", {met.letters: met, **queries})
            yield there.core("values", {met.letters: met, **queries})
        block_in = self.heads * self.head_dim // self.out_groups
        grouped = {"groups": self.out_groups, "block_in": block_in, "R_out": self.out_rank}
        yield at.weight("output_down", grouped)
        yield at.product("output_down", {stream.rows.letters: stream.rows, **grouped})
        both = {"groups": self.out_groups, "R_out": self.out_rank}
        yield from at.linear("output_up", stream.rows, both, width, bias=False)
