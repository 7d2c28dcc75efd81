"""Sizes that depend on the workload: rows of a matmul, attended pairs, tokens held in a cache.

Each is frozen and equal by value, knows the letters it is written with (B batch, T new tokens, S context, P attended
pairs of one sequence, M memory tokens) and gives its whole number in closed form, never by a loop: the same arithmetic
serves NumPy arrays, so no `if`, `min` or `max` on a size.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import ClassVar

from costcalc.expression import ceil_quotient, exact_quotient, positive, smaller
from costcalc.inventory.workload import Workload


def _triangle(n: int) -> int:
    """1 + 2 + ... + n."""
    triangle: int = exact_quotient(n * (n + 1), 2)
    return triangle


def _in_chunks(tokens: int, chunk: int) -> int:
    """Pairs of `tokens` queries that each see their own chunk only, up to themselves."""
    return (tokens // chunk) * _triangle(chunk) + _triangle(tokens % chunk)


def around(tokens: int, window: int, *, uneven: bool = False) -> int:
    """Pairs of `tokens` that see h = window // 2 places to either side: T + 2·(sum of T - d over d = 1 .. h).

    uneven: an even window reaches h - 1 places back.
    """
    reach: int = smaller(window // 2, tokens - 1)
    if not uneven:
        return tokens * (2 * reach + 1) - reach * (reach + 1)
    back: int = smaller((window - 1) // 2, tokens - 1)
    return tokens * (back + reach + 1) - _triangle(back) - _triangle(reach)


class Extent:
    """A size that a workload fixes."""

    __slots__ = ()
    letters: ClassVar[str]

    def of(self, workload: Workload) -> int:
        """The size, for this workload."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Tokens(Extent):
    """One row for every new token: B x T."""

    letters: ClassVar[str] = "B·T"

    def of(self, workload: Workload) -> int:
        """B x T."""
        return workload.batch * workload.new_tokens


@dataclass(frozen=True, slots=True)
class Sequences(Extent):
    """One row for every sequence, B: what a pooler reads of the first token; with `once`, only at past = 0."""

    letters: ClassVar[str] = "B"
    once: bool = False

    def of(self, workload: Workload) -> int:
        """B, or 0."""
        return workload.batch * (workload.past_tokens == 0 if self.once else True)


@dataclass(frozen=True, slots=True)
class Logits(Extent):
    """Rows that the head multiplies: B x T, or B when only the last token is asked for."""

    letters: ClassVar[str] = "B·T"

    def of(self, workload: Workload) -> int:
        """B x T, or B."""
        return workload.batch * (workload.new_tokens if workload.logits == "all" else 1)


@dataclass(frozen=True, slots=True)
class Context(Extent):
    """Tokens that a cache holds after the pass: B x (past + T), never more than the window, or than one chunk."""

    letters: ClassVar[str] = "B·S"
    window: int | None = None
    chunk: int | None = None

    def of(self, workload: Workload) -> int:
        """B x min(past + T, window or chunk)."""
        context = workload.past_tokens + workload.new_tokens
        most = self.window if self.chunk is None else self.chunk
        return workload.batch * (context if most is None else smaller(context, most))


@dataclass(frozen=True, slots=True)
class PagedContext(Extent):
    """Tokens that an engine sets aside for a context: whole blocks, and where a window binds, all that it may touch.

    The latest `window` tokens touch at most ceil((window - 1) / block) + 1 blocks, since they may begin inside of one;
    `slots` more tokens are in flight (a batch that is written before the window moves on). A chunk begins where the one
    before it ends, at most block - gcd(chunk, block) tokens into a block.
    """

    letters: ClassVar[str] = "B·S"
    block: int
    window: int | None = None
    slots: int = 0
    chunk: int | None = None

    def of(self, workload: Workload) -> int:
        """B x the tokens of all blocks."""
        context = ceil_quotient(workload.past_tokens + workload.new_tokens, self.block) * self.block
        if self.window is not None:
            touched = ceil_quotient(self.window + self.slots - 1, self.block) + 1
            context = smaller(context, touched * self.block)
        if self.chunk is not None:
            inside = self.block - gcd(self.chunk, self.block)
            touched = ceil_quotient(inside + self.chunk + self.slots, self.block)
            context = smaller(context, touched * self.block)
        paged: int = workload.batch * context
        return paged


@dataclass(frozen=True, slots=True)
class Pairs(Extent):
    """(query, key) pairs: what the mask allows, or the rectangle that is handed to the kernel.

    Query i (1-based) of T sees past + i keys if causal, past + T if not, at most `window` of the latest, and with a
    `chunk` only those of its own chunk. Sums, with p = past:
      causal  T·p + T(T+1)/2              window  minus the triangle of keys that lie further back
      chunk   F(p+T) - F(p), F(n) = (n // c)·c(c+1)/2 + r(r+1)/2 with r = n mod c
      rectangle  T·(p + T); with a window T·(min(p, w-1) + T): a cache hands over at most w - 1 past keys.
    Not causal, the window reaches w // 2 places to either side (ModernBERT, arXiv 2412.13663): `around`.

    uneven: of an even window one place less back than on. chosen: each query meets so many of the keys, wherever they
    are: as many pairs as in a window of that length, but kernels that mask the others are handed all of them.
    """

    letters: ClassVar[str] = "B·P"
    window: int | None = None
    chunk: int | None = None
    causal: bool = True
    chosen: int | None = None
    uneven: bool = False

    def of(self, workload: Workload) -> int:
        """B x P."""
        if workload.counting == "rectangle":
            return workload.batch * self._handed(workload)
        return workload.batch * (self._attended(workload) if self.causal else self._seen(workload))

    def _seen(self, workload: Workload) -> int:
        if self.window is None:
            return self._handed(workload)
        return around(workload.new_tokens, self.window, uneven=self.uneven)

    def _handed(self, workload: Workload) -> int:
        past, new = workload.past_tokens, workload.new_tokens
        if self.window is not None:
            past = smaller(past, self.window - 1)
        if self.chunk is not None:
            past = smaller(past, self.chunk - 1)
        return new * (past + new)

    def _attended(self, workload: Workload) -> int:
        past, new = workload.past_tokens, workload.new_tokens
        if self.chunk is not None:
            return _in_chunks(past + new, self.chunk) - _in_chunks(past, self.chunk)
        most = self.window if self.chosen is None else self.chosen
        if most is None:
            return new * past + _triangle(new)
        beyond = _triangle(positive(past + new - most)) - _triangle(positive(past - most))
        return new * past + _triangle(new) - beyond


@dataclass(frozen=True, slots=True)
class Routed(Extent):
    """Rows that reach the experts: each of `rows` goes to `chosen` of them, B x T x X.

    handed: how many the class's kernel multiplies it with, where those are more than were chosen (all of them in
    `Llama4TextExperts`, with zeros for the others): the rectangle of experts.
    """

    rows: Extent
    chosen: int
    handed: int | None = None

    @property
    def letters(self) -> str:  # type: ignore[override]
        """Those of the rows, and X."""
        return f"{self.rows.letters}·X"

    def of(self, workload: Workload) -> int:
        """B x T x X."""
        return self.rows.of(workload) * self.experts(workload.counting)

    def experts(self, counting: str) -> int:
        """X: how many each row is multiplied with."""
        return self.handed if self.handed is not None and counting == "rectangle" else self.chosen


@dataclass(frozen=True, slots=True)
class Memory(Extent):
    """One row for every encoder token, B x M; with `once`, only in the pass that starts the request (past = 0)."""

    letters: ClassVar[str] = "B·M"
    once: bool = False

    def of(self, workload: Workload) -> int:
        """B x M, or 0."""
        passes = workload.past_tokens == 0 if self.once else True
        return workload.batch * workload.memory_tokens * passes


@dataclass(frozen=True, slots=True)
class PagedMemory(Extent):
    """Encoder tokens that an engine sets aside for: whole blocks."""

    letters: ClassVar[str] = "B·M"
    block: int

    def of(self, workload: Workload) -> int:
        """B x the tokens of all blocks."""
        paged: int = workload.batch * ceil_quotient(workload.memory_tokens, self.block) * self.block
        return paged


@dataclass(frozen=True, slots=True)
class MemoryPairs(Extent):
    """(query, key) pairs among encoder tokens, B x M x M or what a window allows, in the pass that starts the request.

    The window reaches w // 2 places to either side, and uneven one place less back, as in `Pairs`.
    """

    letters: ClassVar[str] = "B·M·M"
    window: int | None = None
    uneven: bool = False

    def of(self, workload: Workload) -> int:
        """B x M x M, or 0."""
        memory = workload.memory_tokens
        if self.window is None or workload.counting == "rectangle":
            pairs = memory * memory
        else:
            pairs = around(memory, self.window, uneven=self.uneven)
        return workload.batch * pairs * (workload.past_tokens == 0)


@dataclass(frozen=True, slots=True)
class Asking(Extent):
    """New tokens that look at encoder tokens: B x T, or none where a decoder is given no memory."""

    letters: ClassVar[str] = "B·T"

    def of(self, workload: Workload) -> int:
        """B x T, or 0."""
        return workload.batch * workload.new_tokens * (workload.memory_tokens != 0)


@dataclass(frozen=True, slots=True)
class AheadPairs(Extent):
    """(query, key) pairs of streams that look ahead (ProphetNet, arXiv 2001.04063): each at the main one and itself.

    Query i of stream j = 1 .. n sees max(p + i + 1 - j, 1) tokens of the main stream, p = past, and itself:
    2·T + (triangle of p + T - j) - (triangle of p - j) for each stream. Rectangle: n·T·(p + T + T).
    """

    letters: ClassVar[str] = "B·P_ahead"
    streams: int = 1

    def of(self, workload: Workload) -> int:
        """B x n x P."""
        past, new = workload.past_tokens, workload.new_tokens
        if workload.counting == "rectangle":
            return workload.batch * self.streams * new * (past + new + new)
        pairs = 0
        for stream in range(1, self.streams + 1):
            pairs = pairs + 2 * new + _triangle(positive(past + new - stream)) - _triangle(positive(past - stream))
        return workload.batch * pairs


@dataclass(frozen=True, slots=True)
class CrossPairs(Extent):
    """Every new token against every encoder token: B x T x M."""

    letters: ClassVar[str] = "B·T·M"

    def of(self, workload: Workload) -> int:
        """B x T x M."""
        return workload.batch * workload.new_tokens * workload.memory_tokens
