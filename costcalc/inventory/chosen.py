"""Pairs of an attention that meets only some of the keys before it, as a score of its own chooses them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from costcalc.expression import exact_quotient, smaller
from costcalc.inventory.extents import Extent
from costcalc.inventory.workload import Workload


@dataclass(frozen=True, slots=True)
class BlockPairs(Extent):
    """(query, key) pairs where a query meets `blocks` blocks of `block` keys, its own block up to itself among them.

    Which other blocks are chosen is not known, but all of them are whole, so that their number is all it takes. Query i
    (1-based) meets i keys while there are no more than `blocks` blocks, and later (blocks - 1)·block and those of its
    own block. With n tokens in all: m = min(n, blocks·block) see everything, m(m+1)/2, and the r = n - m others
    r·(blocks - 1)·block + (r // block)·block(block+1)/2 + t(t+1)/2, t = r mod block. A kernel without a choice is
    handed the rectangle T·(p + T).
    """

    letters: ClassVar[str] = "B·P"
    block: int
    blocks: int

    def of(self, workload: Workload) -> int:
        """B x P."""
        past, new = workload.past_tokens, workload.new_tokens
        if workload.counting == "rectangle":
            return workload.batch * new * (past + new)
        return workload.batch * (self._met(past + new) - self._met(past))

    def _met(self, tokens: int) -> int:
        """Pairs of the first `tokens` queries of a text."""
        all_seen = smaller(tokens, self.blocks * self.block)
        rest = tokens - all_seen
        own = (rest // self.block) * _triangle(self.block) + _triangle(rest % self.block)
        met: int = _triangle(all_seen) + rest * ((self.blocks - 1) * self.block) + own
        return met


def _triangle(n: int) -> int:
    """1 + 2 + ... + n."""
    triangle: int = exact_quotient(n * (n + 1), 2)
    return triangle
