"""Sizes of recurrent work: places of a short convolution, and tokens and pairs of a scan that runs chunk by chunk.

What a kernel is handed beyond the tokens themselves counts under counting="rectangle" only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from costcalc.expression import ceil_quotient
from costcalc.inventory.extents import Extent
from costcalc.inventory.workload import Workload


@dataclass(frozen=True, slots=True)
class Convolved(Extent):
    """Places at which a causal convolution of `taps` is taken: B x T.

    Its kernel is handed taps - 1 zeros on both sides, and gives as many places more, which are cut off again.
    """

    letters: ClassVar[str] = "B·T"
    taps: int

    def of(self, workload: Workload) -> int:
        """B x T, or B x (T + taps - 1)."""
        more = self.taps - 1 if workload.counting == "rectangle" else 0
        return workload.batch * (workload.new_tokens + more)


@dataclass(frozen=True, slots=True)
class WholeChunks(Extent):
    """Tokens of a scan that runs chunk by chunk, padded to whole chunks: B x ceil(T / chunk) x chunk."""

    letters: ClassVar[str] = "B·T"
    chunk: int

    def of(self, workload: Workload) -> int:
        """B x T, rounded up."""
        padded: int = workload.batch * ceil_quotient(workload.new_tokens, self.chunk) * self.chunk
        return padded


@dataclass(frozen=True, slots=True)
class ChunkPairs(Extent):
    """Every token of a chunk against all of its chunk; the last one is as short as it is: F·chunk^2 + r^2."""

    letters: ClassVar[str] = "B·P"
    chunk: int

    def of(self, workload: Workload) -> int:
        """B x the pairs of T new tokens in F whole chunks and r tokens more."""
        whole, rest = workload.new_tokens // self.chunk, workload.new_tokens % self.chunk
        return workload.batch * (whole * self.chunk**2 + rest * rest)
