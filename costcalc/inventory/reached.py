"""Tokens that some new token looks at, where a window hides the others from all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from costcalc.expression import smaller
from costcalc.inventory.extents import Extent
from costcalc.inventory.workload import Workload


@dataclass(frozen=True, slots=True)
class Reached(Extent):
    """The new tokens, and of the past the w - 1 that the first of them still sees: B x (min(p, w - 1) + T)."""

    letters: ClassVar[str] = "B·S"
    window: int

    def of(self, workload: Workload) -> int:
        """B x (min(past, window - 1) + T)."""
        past: int = smaller(workload.past_tokens, self.window - 1)
        return workload.batch * (past + workload.new_tokens)
