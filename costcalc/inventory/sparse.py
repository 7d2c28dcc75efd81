"""(query, key) pairs of a text that an encoder reads at once, where each token meets only some of the others.

attended is what the masks allow. rectangle is what the library's kernels multiply: whole blocks, and whatever of them
the masks hide afterwards. All are closed forms, for whole numbers, arrays and symbols.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from costcalc.expression import ceil_quotient, exceeds, smaller
from costcalc.inventory.extents import Extent, around
from costcalc.inventory.texts import Text
from costcalc.inventory.workload import Workload


@dataclass(frozen=True, slots=True)
class _Pairs(Extent):
    """Pairs of one text, times the texts."""

    text: Text

    @property
    def letters(self) -> str:  # type: ignore[override]
        """B·P, or B·M·M."""
        return "B·M·M" if self.text.of_source else "B·P"

    def of(self, workload: Workload) -> int:
        """B x P."""
        is_handed = workload.counting == "rectangle"
        pairs = self.handed(self.text.handed(workload)) if is_handed else self.seen(self.text.tokens(workload))
        total: int = pairs * self.text.texts(workload)
        return total

    def seen(self, tokens: Any) -> Any:
        """What the masks allow among so many tokens."""
        raise NotImplementedError

    def handed(self, tokens: Any) -> Any:
        """What kernels multiply for so many."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class SlidingPairs(_Pairs):
    """A window of h = window // 2 places to either side, and the first `first` tokens with all (Longformer).

    Those see all T, all others see them: g·T + g·(T - g), and the window's pairs among the other T - g.
    Kernels multiply chunks of 2h tokens, each with half of the one before it (`_sliding_chunks_query_key_matmul`):
    (T / h - 1)·(2h)^2 scores; and blocks of h with 3h values, 3·T·h. Beside these every token meets the first ones,
    before and after.
    """

    window: int
    first: int = 0
    of_values: bool = False

    def seen(self, tokens: Any) -> Any:
        """g·T + g·(T - g) + what the window allows among T - g."""
        if not self.first:
            return around(tokens, self.window)
        first = smaller(tokens, self.first)
        return first * tokens + first * (tokens - first) + around(tokens - first, self.window)

    def handed(self, tokens: Any) -> Any:
        """(T / h - 1)·4h^2 or 3·T·h, and 2·g·T."""
        half = self.window // 2
        sliding = 3 * tokens * half if self.of_values else (tokens // half - 1) * (4 * half**2)
        return sliding + 2 * self.first * tokens


@dataclass(frozen=True, slots=True)
class BlockSparsePairs(_Pairs):
    """Blocks of `block` tokens (BigBird): the first and the last one with all, and each other one with itself, its
    neighbours, the first, the last and `random` more.

    Of n blocks the last has s tokens: (b + s)·T of the outer two; b·(3b + s + r·b) of the second and the last but one,
    to which an outer one is a neighbour; b·(4b + s + r·b) of each of the n - 4 between them. A text of no more than
    (5 + 2r)·b tokens has all pairs.
    """

    block: int
    random: int

    def seen(self, tokens: Any) -> Any:
        """All pairs, or those of blocks."""
        block = self.block
        blocks = ceil_quotient(tokens, block)
        last, drawn = tokens - (blocks - 1) * block, self.random * block
        outer = (block + last) * tokens + 2 * block * (3 * block + last + drawn)
        sparse = outer + (blocks - 4) * (block * (4 * block + last + drawn))
        whole = tokens * tokens
        return whole + exceeds(tokens, dense_up_to(block, self.random)) * (sparse - whole)

    def handed(self, tokens: Any) -> Any:
        """The same, of whole blocks."""
        return self.seen(tokens)


def dense_up_to(block: int, random: int) -> int:
    """Tokens up to which BigBird's classes attend in full: (5 + 2r)·b."""
    return (5 + 2 * random) * block


@dataclass(frozen=True, slots=True)
class LocalPairs(_Pairs):
    """A window of h = window // 2 places to either side; and with `summed` the sums of all blocks of so many tokens.

    Kernels multiply blocks of h + 1 tokens with three of them (LongT5), and with all T // summed sums.
    """

    window: int
    summed: int | None = None

    def seen(self, tokens: Any) -> Any:
        """The window's pairs, and T·(T // summed)."""
        near = around(tokens, self.window)
        return near if self.summed is None else near + tokens * (tokens // self.summed)

    def handed(self, tokens: Any) -> Any:
        """Whole blocks of b: n·b·(3b + T // summed)."""
        block = self.window // 2 + 1
        rows = ceil_quotient(tokens, block) * block
        return rows * (3 * block) if self.summed is None else rows * (3 * block + tokens // self.summed)


@dataclass(frozen=True, slots=True)
class WithSums(Extent):
    """Rows that keys and values are made of: each token, and the sum of each whole block of so many."""

    text: Text
    summed: int

    @property
    def letters(self) -> str:  # type: ignore[override]
        """B·T, or B·M."""
        return "B·M" if self.text.of_source else "B·T"

    def of(self, workload: Workload) -> int:
        """B x (T + T // summed)."""
        tokens = self.text.tokens(workload)
        return self.text.texts(workload) * (tokens + tokens // self.summed)


@dataclass(frozen=True, slots=True)
class Summed(_Pairs):
    """Tokens that are added up to sums of blocks: each once, where there is a block.

    The library multiplies each with a row of zeros and ones, one for each sum: T·(T // summed).
    """

    summed: int

    def seen(self, tokens: Any) -> Any:
        """T, or 0."""
        return tokens * exceeds(tokens, self.summed - 1)

    def handed(self, tokens: Any) -> Any:
        """T·(T // summed)."""
        return tokens * (tokens // self.summed)


@dataclass(frozen=True, slots=True)
class BlocksAndMore(_Pairs):
    """Each token with its own block, and with rows of no token, which meet all (Pegasus-X, arXiv 2208.04347).

    G rows: 2·T·G + G^2, and F·b^2 + r^2 of F whole blocks and r tokens. staggered: blocks begin half a block earlier,
    so that the first one has b // 2 tokens; kernels are handed another half block on both sides.
    """

    block: int
    staggered: bool = False

    def seen(self, tokens: Any) -> Any:
        """Pairs within blocks, and with the rows beside them."""
        more, first = self.text.more, smaller(tokens, self.block // 2) if self.staggered else 0
        rest = tokens - first
        within = first * first + (rest // self.block) * self.block**2 + (rest % self.block) * (rest % self.block)
        return within + 2 * more * tokens + more**2

    def handed(self, tokens: Any) -> Any:
        """Whole blocks."""
        more, rows = self.text.more, tokens + wider(self.block, self.staggered)
        return rows * self.block + 2 * more * rows + more**2


@dataclass(frozen=True, slots=True)
class StaggeredRows(Extent):
    """Rows that an attention of staggered blocks makes its queries, keys and values of: B x (T + more).

    Kernels are handed half a block more on both sides.
    """

    text: Text
    block: int

    @property
    def letters(self) -> str:  # type: ignore[override]
        """B·T, or B·M."""
        return "B·M" if self.text.of_source else "B·T"

    def of(self, workload: Workload) -> int:
        """B x (T + more), or B x (T filled up + b + more)."""
        beside = wider(self.block, True) if workload.counting == "rectangle" else 0
        rows: int = self.text.texts(workload) * (self.text.handed(workload) + beside + self.text.more)
        return rows


def wider(block: int, staggered: bool) -> int:
    """Half a block on both sides."""
    return 2 * (block // 2) if staggered else 0


@dataclass(frozen=True, slots=True)
class FirstRows(Extent):
    """Rows of the first tokens of a text, which see all; or, with `others`, of all tokens as those see them.

    Where there are no first tokens there are none of the others either.
    """

    text: Text
    first: int
    others: bool = False

    @property
    def letters(self) -> str:  # type: ignore[override]
        """B·T, or B·M."""
        return "B·M" if self.text.of_source else "B·T"

    def of(self, workload: Workload) -> int:
        """B x min(g, T), or B x T."""
        if not self.first:
            return 0
        rows = self.text.handed(workload) if self.others else smaller(self.text.tokens(workload), self.first)
        total: int = self.text.texts(workload) * rows
        return total


@dataclass(frozen=True, slots=True)
class LandmarkPairs(_Pairs):
    """Tokens with m landmarks, and landmarks with tokens, 2·T·m; of scores also landmarks with one another, m^2."""

    landmarks: int
    of_values: bool = False

    def seen(self, tokens: Any) -> Any:
        """2·T·m, and m^2."""
        return 2 * tokens * self.landmarks + (0 if self.of_values else self.landmarks**2)

    def handed(self, tokens: Any) -> Any:
        """The same."""
        return self.seen(tokens)


@dataclass(frozen=True, slots=True)
class ChosenBlocks(_Pairs):
    """Of n^2 pairs of blocks of b tokens `blocks` in full, the last block filled up; with_means: and n^2 of means."""

    block: int
    blocks: int
    with_means: bool = True

    def seen(self, tokens: Any) -> Any:
        """min(K, n^2)·b^2, and n^2."""
        count = ceil_quotient(tokens, self.block)
        means = count * count
        chosen = smaller(means, self.blocks) * self.block**2
        return chosen + means if self.with_means else chosen

    def handed(self, tokens: Any) -> Any:
        """The same."""
        return self.seen(tokens)
