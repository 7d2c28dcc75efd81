"""Sizes of what stands for many tokens at once: entries of `rate` tokens each, and what waits to be one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from costcalc.expression import exact_quotient, smaller
from costcalc.inventory.extents import Extent
from costcalc.inventory.workload import Workload


@dataclass(frozen=True, slots=True)
class Entries(Extent):
    """Entries that a cache holds after the pass, one for every `rate` tokens: B x floor((past + T) / rate)."""

    letters: ClassVar[str] = "B·C"
    rate: int

    def of(self, workload: Workload) -> int:
        """B x C."""
        entries: int = workload.batch * ((workload.past_tokens + workload.new_tokens) // self.rate)
        return entries


@dataclass(frozen=True, slots=True)
class Waiting(Extent):
    """Tokens behind the last entry, which are kept until there are enough of them: B x ((past + T) mod rate)."""

    letters: ClassVar[str] = "B·waiting"
    rate: int

    def of(self, workload: Workload) -> int:
        """B x the rest."""
        waiting: int = workload.batch * ((workload.past_tokens + workload.new_tokens) % self.rate)
        return waiting


@dataclass(frozen=True, slots=True)
class Overlapping(Extent):
    """Tokens of the last entry, which the next one is made of too: B x rate, once there is an entry."""

    letters: ClassVar[str] = "B·overlapping"
    rate: int

    def of(self, workload: Workload) -> int:
        """B x rate, or 0."""
        entries = (workload.past_tokens + workload.new_tokens) // self.rate
        overlapping: int = workload.batch * smaller(entries, 1) * self.rate
        return overlapping


@dataclass(frozen=True, slots=True)
class EntryPairs(Extent):
    """(query, entry) pairs: query i (1-based) meets the floor(i / rate) entries whose tokens all stand before or at it.

    chosen: at most so many of them, whichever. With n tokens in all, q = n // rate and r = n mod rate the sum of the
    entries is S(n) = rate·q(q-1)/2 + q(r + 1); of those that are chosen it is S(m) + chosen·(n - m), where m is n, or
    chosen·rate - 1 if that is less. A kernel without a choice is handed T·floor((p + T) / rate).
    """

    letters: ClassVar[str] = "B·P"
    rate: int
    chosen: int | None = None

    def of(self, workload: Workload) -> int:
        """B x P."""
        past, new = workload.past_tokens, workload.new_tokens
        if workload.counting == "rectangle":
            handed: int = workload.batch * new * ((past + new) // self.rate)
            return handed
        return workload.batch * (self._met(past + new) - self._met(past))

    def _met(self, tokens: int) -> int:
        """Pairs of the first `tokens` queries of a text."""
        if self.chosen is None:
            return self._all(tokens)
        free = smaller(tokens, self.chosen * self.rate - 1)
        met: int = self._all(free) + self.chosen * (tokens - free)
        return met

    def _all(self, tokens: int) -> int:
        entries, rest = tokens // self.rate, tokens % self.rate
        pairs: int = self.rate * exact_quotient(entries * (entries - 1), 2) + entries * (rest + 1)
        return pairs
