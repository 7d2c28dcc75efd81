"""How many distances between tokens an attention has rows for, where those are multiplied like tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from costcalc.expression import smaller
from costcalc.inventory.extents import Extent
from costcalc.inventory.workload import Workload


@dataclass(frozen=True, slots=True)
class Distances(Extent):
    """Twice the new tokens, as far as a table reaches to either side: 2 x min(T, reach), the same for all sequences.

    reach: None for all of them.

    One more than the distances between T tokens: from -T to T - 1 (DeBERTa, arXiv 2006.03654, section 3.1).
    """

    letters: ClassVar[str] = "distances"
    reach: int | None

    def of(self, workload: Workload) -> int:
        """2 x min(T, reach)."""
        count: int = 2 * (workload.new_tokens if self.reach is None else smaller(workload.new_tokens, self.reach))
        return count


@dataclass(frozen=True, slots=True)
class EachDistances(Extent):
    """Twice the new tokens, in each sequence: B x 2 x T (XLNet, arXiv 1906.08237, in its code)."""

    letters: ClassVar[str] = "B·distances"

    def of(self, workload: Workload) -> int:
        """B x 2 x T."""
        return workload.batch * 2 * workload.new_tokens
