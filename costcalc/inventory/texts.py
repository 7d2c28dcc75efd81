"""Sizes of a whole text that an encoder reads at once, where they are other than rows and all pairs.

A class may fill a text up to whole blocks before its layers run: that counts under counting="rectangle" only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from costcalc.expression import ceil_log2, ceil_quotient, exceeds
from costcalc.inventory.extents import Extent
from costcalc.inventory.workload import Workload


@dataclass(frozen=True, slots=True)
class Text:
    """Whose tokens, and what the layers are handed of them.

    of_source: those of an encoder beside a decoder, M, in the pass that starts a request. multiple: kernels are handed
    a multiple of so many tokens, where a text has more than `beyond`. more: rows of no token that run beside it.
    """

    of_source: bool = False
    multiple: int = 1
    beyond: int = 0
    more: int = 0

    def tokens(self, workload: Workload) -> int:
        """T, or M."""
        return workload.memory_tokens if self.of_source else workload.new_tokens

    def handed(self, workload: Workload) -> Any:
        """T, or under rectangle counting T filled up."""
        tokens = self.tokens(workload)
        if workload.counting != "rectangle" or self.multiple == 1:
            return tokens
        filled = ceil_quotient(tokens, self.multiple) * self.multiple
        return filled if self.beyond == 0 else tokens + exceeds(tokens, self.beyond) * (filled - tokens)

    def texts(self, workload: Workload) -> int:
        """B, or for an encoder beside a decoder 0 in all passes but the first."""
        return workload.batch * (workload.past_tokens == 0 if self.of_source else 1)


@dataclass(frozen=True, slots=True)
class TextRows(Extent):
    """One row for every token that a layer is handed, and for what runs beside them: B x (T + more)."""

    text: Text

    @property
    def letters(self) -> str:  # type: ignore[override]
        """B·T, or B·M."""
        return "B·M" if self.text.of_source else "B·T"

    def of(self, workload: Workload) -> int:
        """B x (T + more), T filled up under rectangle counting."""
        rows: int = self.text.texts(workload) * (self.text.handed(workload) + self.text.more)
        return rows


@dataclass(frozen=True, slots=True)
class Stages(Extent):
    """Stages of a fast Fourier transform over all tokens: ceil(log2(T))."""

    letters: ClassVar[str] = "stages"
    of_source: bool = False

    def of(self, workload: Workload) -> int:
        """ceil(log2(T)), of encoder tokens ceil(log2(M))."""
        stages: int = ceil_log2(workload.memory_tokens if self.of_source else workload.new_tokens)
        return stages


@dataclass(frozen=True, slots=True)
class FirstTokens(Extent):
    """The first token of each text, B, in the pass that reads it; a class's pooler runs in every pass."""

    letters: ClassVar[str] = "B"

    def of(self, workload: Workload) -> int:
        """B; of a pass with a past 0, or B under rectangle counting."""
        return workload.batch * (workload.past_tokens == 0 or workload.counting == "rectangle")
