"""Where records are made: a place in the model, and the stream of rows that flows past it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod

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
    Reached,
    Record,
    Routed,
    Sequences,
    Text,
    TextRows,
    Tokens,
    Unstated,
    Weight,
)

OWN_TEXT = Text()
"""That of the new tokens."""
OfReach = Callable[["int | None", "int | None"], Extent]
"""Of a window and a chunk, of which at most one is there."""


@dataclass(frozen=True, slots=True)
class Stream:
    """The rows that flow through an attention: which ask, which are asked, and what of those stays held.

    rows: of the queries, and of whatever works row by row. key_rows: those that keys and values are made of. seen: all
    tokens that are looked at, earlier ones too. pairs: the (query, key) pairs, by window and chunk. held: the tokens
    that a cache holds, by the same; None where nothing is kept. cache: the kind of that cache.
    text: whose tokens its rows are, for layers that read a whole text.
    """

    rows: Extent
    key_rows: Extent
    seen: Extent
    pairs: OfReach
    held: OfReach | None = None
    cache: str = "kv"
    text: Text = OWN_TEXT

    def chosen(self, most: int | None) -> Extent:
        """The pairs, where each query meets at most so many keys, wherever they are; None for all. Of a decoder."""
        pairs = self.pairs(None, None)
        return replace(pairs, chosen=most) if isinstance(pairs, Pairs) else pairs

    def reached(self, window: int | None) -> Extent:
        """The tokens that are looked at within a window; as many as without one where nothing is kept."""
        return self.seen if window is None or self.held is None else Reached(window)

    def routed(self, chosen: int, handed: int | None) -> Stream:
        """Its rows where each goes to `chosen` experts; `handed` is for kernels that multiply with more."""
        return replace(self, rows=Routed(self.rows, chosen, handed))

    def handed(self, *, multiple: int, beyond: int, more: int) -> Stream:
        """The rows of layers that are handed a text filled up to a multiple, with `more` rows of no token."""
        text = replace(self.text, multiple=multiple, beyond=beyond, more=more)
        rows = TextRows(text)
        return replace(self, rows=rows, key_rows=rows, seen=rows, text=text)


DECODER = Stream(Tokens(), Tokens(), Context(), pairs=Pairs, held=Context)
"""A decoder's rows are the new tokens; they look back only, and are cached."""

ENCODER = Stream(Tokens(), Tokens(), Tokens(), pairs=partial(Pairs, causal=False))
"""An encoder alone: its rows are the new tokens, they look both ways, and nothing is kept."""

SOURCE = Stream(
    *(Memory(once=True), Memory(once=True), Memory(once=True)),
    pairs=lambda window, _: MemoryPairs(window),
    text=Text(of_source=True),
)
"""The encoder of a pair: its rows are the memory tokens, once a request."""

CROSS = Stream(
    Asking(), Memory(once=True), Memory(), pairs=lambda *_: CrossPairs(), held=lambda *_: Memory(), cache="cross"
)
"""A decoder's new tokens look at all memory tokens, of which keys and values are made once and kept."""


@dataclass(slots=True)
class At:
    """A place in the model: its path, and how many equal layers it stands for.

    shared: those layers have one set of weights (ALBERT, arXiv 1909.11942), and all else of their own. experts: that
    many of everything that is held here, of which a token uses `chosen`; 0 where there is but one.
    """

    path: str
    times: int = 1
    shared: bool = False
    experts: int = 0
    chosen: int = 0

    def under(self, name: str) -> At:
        """The place one step further down."""
        return At(f"{self.path}.{name}", self.times, self.shared, self.experts, self.chosen)

    def of_experts(self, name: str, experts: int, *, chosen: int) -> At:
        """A place of which there are several, and a token uses some."""
        return At(f"{self.path}.{name}", self.times, self.shared, experts, chosen)

    @property
    def sets(self) -> int:
        """How many sets of weights its layers have."""
        return 1 if self.shared else self.times

    def weight(self, name: str, axes: Mapping[str, int], *, role: str = "trainable", table: bool = False) -> Weight:
        """A parameter array, once, or for each of the experts; "table" marks a vocabulary, position or type table."""
        return self._held(f"{self.path}.{name}", axes, role, table)

    def core(self, name: str, axes: Mapping[str, int | Extent], *, form: str | None = None) -> Matmul:
        """A product of two activations: `scores` or `values`."""
        return Matmul(f"{self.path}.{name}", axes, self.times, None, name, form)

    def product(self, name: str, axes: Mapping[str, int | Extent], *, form: str | None = None) -> Matmul:
        """A product with the weight of this name; `form` where it is that of one form of a latent attention."""
        path = f"{self.path}.{name}"
        return Matmul(path, axes, self.times, path, form=form)

    def scan(
        self, name: str, axes: Mapping[str, int | Extent], *, form: str | None = None, of: str | None = None
    ) -> Matmul:
        """Recurrent work, token by token or chunk by chunk; `of` the weight of this name, where it is a convolution."""
        held = None if of is None else f"{self.path}.{of}"
        return Matmul(f"{self.path}.{name}", axes, self.times, held, "scan", form)

    def state(self, name: str, axes: Mapping[str, int], *, dtype: str | None = None) -> Cached:
        """An array of constant size that each sequence holds; dtype None follows that of the cache."""
        one = Sequences()
        return Cached(f"{self.path}.{name}", {one.letters: one, **axes}, self.times, "state", dtype)

    def cached(
        self, name: str, axes: Mapping[str, int | Extent], *, kind: str = "kv", form: str | None = None
    ) -> Cached:
        """An array that a request holds."""
        return Cached(f"{self.path}.{name}", axes, self.times, kind, None, form)

    def unstated(self, of: str, why: str) -> Unstated:
        """What a part does, and nobody has stated."""
        return Unstated(self.path, of, why)

    def linear(
        self,
        name: str,
        rows: Extent,
        inputs: Mapping[str, int],
        outputs: Mapping[str, int],
        *,
        bias: bool,
        groups: int | None = None,
    ) -> tuple[Record, ...]:
        """Rows x inputs -> rows x outputs: the weight, its matmul, and a bias the size of the outputs if it has one.

        groups: in so many equal parts, each of which makes its part of the outputs of its part of the inputs.
        """
        path, axes = f"{self.path}.{name}", {**inputs, **outputs}
        if groups is not None:
            blocks = prod(inputs.values()) // groups, prod(outputs.values()) // groups
            axes = {"groups": groups, "block_in": blocks[0], "block_out": blocks[1]}
        weight = self._held(path, axes)
        matmul = Matmul(path, {rows.letters: rows, **axes}, self.times, path)
        return (weight, matmul, self._held(f"{path}_bias", outputs)) if bias else (weight, matmul)

    def _held(self, path: str, axes: Mapping[str, int], role: str = "trainable", table: bool = False) -> Weight:
        """Once, or for each of the experts."""
        if not self.experts:
            return Weight(path, axes, self.sets, role, table)
        return Weight(path, {"E": self.experts, **axes}, self.sets, role, table, used={"E": self.chosen})
