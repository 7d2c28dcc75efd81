"""Where records are made: a place in the model, and the stream of rows that flows past it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from costcalc.inventory import Cached, Context, Extent, Matmul, Pairs, Record, Tokens, Weight


@dataclass(frozen=True, slots=True)
class Stream:
    """The rows that flow through a stack, whom they may look at, and whether their keys and values are kept."""

    rows: Extent
    causal: bool
    held: bool

    def pairs(self, window: int | None) -> Pairs:
        """The (query, key) pairs of one attention."""
        return Pairs(window=window, causal=self.causal)

    def context(self, window: int | None) -> Context:
        """The tokens that a cache of this stream holds."""
        return Context(window=window)


DECODER = Stream(rows=Tokens(), causal=True, held=True)
"""A decoder's rows are the new tokens; they look back only, and are cached."""


@dataclass(slots=True)
class At:
    """A place in the model: its path, and how many equal layers it stands for."""

    path: str
    times: int = 1

    def under(self, name: str) -> At:
        """The place one step further down."""
        return At(f"{self.path}.{name}", self.times)

    def weight(self, name: str, axes: Mapping[str, int], *, role: str = "trainable", table: bool = False) -> Weight:
        """A parameter array; "table" marks a vocabulary, position or token-type table."""
        return Weight(f"{self.path}.{name}", axes, self.times, role, table)

    def core(self, name: str, axes: Mapping[str, int | Extent]) -> Matmul:
        """A product of two activations: `scores` or `values`."""
        return Matmul(f"{self.path}.{name}", axes, self.times, None, name)

    def cached(self, name: str, axes: Mapping[str, int | Extent]) -> Cached:
        """An array that a request holds."""
        return Cached(f"{self.path}.{name}", axes, self.times)

    def linear(
        self, name: str, rows: Extent, inputs: Mapping[str, int], outputs: Mapping[str, int], *, bias: bool
    ) -> tuple[Record, ...]:
        """Rows x inputs -> rows x outputs: the weight, its matmul, and a bias the size of the outputs if it has one."""
        path, axes = f"{self.path}.{name}", {**inputs, **outputs}
        weight = Weight(path, axes, self.times)
        matmul = Matmul(path, {rows.letters: rows, **axes}, self.times, path)
        return (weight, matmul, Weight(f"{path}_bias", outputs, self.times)) if bias else (weight, matmul)
