"""Sizes that kernels are handed more than once, where the mathematics needs them once."""

from __future__ import annotations

from dataclasses import dataclass

from costcalc.inventory.extents import Extent
from costcalc.inventory.workload import Workload


@dataclass(frozen=True, slots=True)
class Handed(Extent):
    """`extent`, or `times` as much under counting="rectangle", where a kernel is called so often for one result."""

    extent: Extent
    times: int

    @property
    def letters(self) -> str:  # type: ignore[override]
        """Those of the extent."""
        return self.extent.letters

    def of(self, workload: Workload) -> int:
        """The extent's size, once or `times`."""
        return self.extent.of(workload) * (self.times if workload.counting == "rectangle" else 1)
