"""Where records are made: a place in the model, and the stream of rows that flows past it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from costcalc.inventory import (
    Asking,
    Cached,
    Context,
    CrossPairs,
    Extent,
    Matmul,
    Memory,
    MemoryPairs,
    Pairs,
    Record,
    Tokens,
    Weight,
)

OfWindow = Callable[["int | None"], Extent]


@dataclass(frozen=True, slots=True)
class Stream:
    """The rows that flow through an attention: which ask, which are asked, and what of those stays held.

    rows: of the queries, and of whatever works row by row. key_rows: those that keys and values are made of. pairs: the
    (query, key) pairs, by window. held: the tokens that a cache holds, by window; None where nothing is kept.
    cache: the kind of that cache.
    """

    rows: Extent
    key_rows: Extent
    pairs: OfWindow
    held: OfWindow | None = None
    cache: str = "kv"


DECODER = Stream(Tokens(), Tokens(), pairs=Pairs, held=Context)
"""A decoder's rows are the new tokens; they look back only, and are cached."""

ENCODER = Stream(Tokens(), Tokens(), pairs=partial(Pairs, causal=False))
"""An encoder alone: its rows are the new tokens, they look both ways, and nothing is kept."""

SOURCE = Stream(Memory(once=True), Memory(once=True), pairs=MemoryPairs)
"""The encoder of a pair: its rows are the memory tokens, once a request."""

CROSS = Stream(Asking(), Memory(once=True), pairs=lambda _: CrossPairs(), held=lambda _: Memory(), cache="cross")
"""A decoder's new tokens look at all memory tokens, of which keys and values are made once and kept."""


@dataclass(slots=True)
class At:
    """A place in the model: its path, and how many equal layers it stands for.

    shared: those layers have one set of weights (ALBERT, arXiv 1909.11942), and all else of their own.
    """

    path: str
    times: int = 1
    shared: bool = False

    def under(self, name: str) -> At:
        """The place one step further down."""
        return At(f"{self.path}.{name}", self.times, self.shared)

    @property
    def sets(self) -> int:
        """How many sets of weights its layers have."""
        return 1 if self.shared else self.times

    def weight(self, name: str, axes: Mapping[str, int], *, role: str = "trainable", table: bool = False) -> Weight:
        """A parameter array; "table" marks a vocabulary, position or token-type table."""
        return Weight(f"{self.path}.{name}", axes, self.sets, role, table)

    def core(self, name: str, axes: Mapping[str, int | Extent]) -> Matmul:
        """A product of two activations: `scores` or `values`."""
        return Matmul(f"{self.path}.{name}", axes, self.times, None, name)

    def cached(self, name: str, axes: Mapping[str, int | Extent], *, kind: str = "kv") -> Cached:
        """An array that a request holds."""
        return Cached(f"{self.path}.{name}", axes, self.times, kind)

    def linear(
        self, name: str, rows: Extent, inputs: Mapping[str, int], outputs: Mapping[str, int], *, bias: bool
    ) -> tuple[Record, ...]:
        """Rows x inputs -> rows x outputs: the weight, its matmul, and a bias the size of the outputs if it has one."""
        path, axes = f"{self.path}.{name}", {**inputs, **outputs}
        weight = Weight(path, axes, self.sets)
        matmul = Matmul(path, {rows.letters: rows, **axes}, self.times, path)
        return (weight, matmul, Weight(f"{path}_bias", outputs, self.sets)) if bias else (weight, matmul)
