"""Sizes of a whole text that an encoder reads at once: what depends on its length in other ways than rows and pairs.

`of_source` is for the encoder beside a decoder: its text is the memory tokens, in the pass that starts a request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from costcalc.expression import ceil_log2
from costcalc.inventory.extents import Extent
from costcalc.inventory.workload import Workload


def text_of(workload: Workload, of_source: bool) -> int:
    """Tokens of one text."""
    return workload.memory_tokens if of_source else workload.new_tokens


@dataclass(frozen=True, slots=True)
class Stages(Extent):
    """Stages of a fast Fourier transform over all tokens: ceil(log2(T))."""

    letters: ClassVar[str] = "stages"
    of_source: bool = False

    def of(self, workload: Workload) -> int:
        """ceil(log2(T)), of encoder tokens ceil(log2(M))."""
        stages: int = ceil_log2(text_of(workload, self.of_source))
        return stages
