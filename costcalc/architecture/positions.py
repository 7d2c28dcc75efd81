"""Position information: none, a learned table, the sinusoids of 2017, rotations, or what is added to scores.

`added` kinds are added to the token embeddings once, at the bottom of a stack; the others act inside each attention,
so a layer may have its own. `rows` is how many positions a table has, None where there is no end. A kind with
`bias_records` adds numbers to the scores of self-attention, one for each head.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeGuard

from pydantic import Field

from costcalc.architecture.component import Component, Flag, PositiveFloat, Rule, Size, Whole
from costcalc.architecture.places import At
from costcalc.architecture.relative_rows import LearnedAndRelativePositions, RelativeRows
from costcalc.inventory import Record


class NoPositions(Component):
    """No position information in this layer or stack."""

    kind: Literal["none"] = "none"
    added: ClassVar[bool] = False
    rows: ClassVar[None] = None

    def summary(self) -> str:
        """One line for a reader."""
        return "none"

    def records(self, at: At, width: Mapping[str, int]) -> Iterator[Record]:
        """Nothing is held."""
        del at, width
        yield from ()


class LearnedPositions(Component):
    """A trained table of `length` rows, added to the embeddings; longer texts have no row (GPT-2, BERT).

    offset: the first rows that no position uses, but that are held (2 in RoBERTa, BART and OPT).
    """

    kind: Literal["learned"] = "learned"
    length: Size
    offset: Whole = 0
    added: ClassVar[bool] = True

    @property
    def rows(self) -> int:
        """Those of the table that positions use."""
        return self.length - self.offset

    def rules(self, d_model: int) -> Iterator[Rule]:
        """A row is left for a position."""
        yield self.offset < self.length, "offset {offset} leaves no row of {length}"

    def summary(self) -> str:
        """One line for a reader."""
        unused = f", {self.offset} of them unused" if self.offset else ""
        return f"learned, {self.length:,} rows{unused}"

    def records(self, at: At, width: Mapping[str, int]) -> Iterator[Record]:
        """One table of length x D, or x the embedding's width W where that is projected afterwards."""
        yield at.weight("positions", {"length": self.length, **width}, table=True)


class SinusoidalPositions(Component):
    """The sinusoids of arXiv 1706.03762, section 3.5, added to the embeddings.

    stored: "no" when they are computed on the fly; "frozen" when a checkpoint holds the table as a parameter that is
    not trained; "buffer" when it is held beside the parameters. A stored table needs its `length`; where
    none is stored, the sinusoids end there if it is written.
    """

    kind: Literal["sinusoidal"] = "sinusoidal"
    stored: Literal["no", "frozen", "buffer"] = "no"
    length: Size | None = None
    added: ClassVar[bool] = True

    @property
    def rows(self) -> int | None:
        """Those of a stored table, or where it was written that they end."""
        return self.length

    def summary(self) -> str:
        """One line for a reader."""
        return "sinusoidal" if self.stored == "no" else f"sinusoidal, stored ({self.stored})"

    def rules(self, d_model: int) -> Iterator[Rule]:
        """A stored table has a length."""
        yield self.stored == "no" or self.length is not None, "a stored table of sinusoids needs its `length`"

    def records(self, at: At, width: Mapping[str, int]) -> Iterator[Record]:
        """The table, where it is stored."""
        if self.stored != "no" and self.length is not None:
            yield at.weight("positions", {"length": self.length, **width}, role=self.stored, table=True)


class RotaryPositions(Component):
    """RoPE (arXiv 2104.09864): queries and keys are rotated, nothing is held.

    theta: the base of the frequencies. rotary_dim: how many of each head's `head_dim` numbers are rotated, None for all
    (partial rotary: Phi, GPT-J, NeoX); of an odd number of them the last is not rotated. frequencies: those of the
    "rotated" numbers alone, or of the whole "head", of whose pairs i and i + head_dim / 2 the first rotary_dim / 2 are
    rotated (Gemma-4); they change no count.
    """

    kind: Literal["rope"] = "rope"
    theta: PositiveFloat = 10_000.0
    rotary_dim: Size | None = None
    frequencies: Literal["rotated", "head"] = "rotated"
    stored: Literal["no", "frozen"] = "no"
    length: Size | None = None
    width: Size | None = None
    values: Flag = False
    added: ClassVar[bool] = False

    @property
    def rows(self) -> int | None:
        """Those of a stored table."""
        return self.length

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Which frequencies is a question of partial rotation; only a stored table has a size."""
        is_partial = self.rotary_dim is not None
        yield is_partial or self.frequencies == "rotated", "`frequencies: {frequencies}` needs a `rotary_dim`"
        sizes = self.length is not None, self.width is not None
        yield sizes == (self.stored != "no",) * 2, "`length` and `width` are those of a stored table, which needs both"

    def left_out(self, d_model: int) -> dict[str, tuple[Any, str]]:
        """All numbers of a head are rotated, whatever its size."""
        return {"rotary_dim": (None, "all")}

    def summary(self) -> str:
        """One line for a reader."""
        part = "" if self.rotary_dim is None else f", {self.rotary_dim} numbers of each head"
        part += " at the whole head's frequencies" if self.frequencies == "head" else ""
        part += ", values too" if self.values else ""
        stored = "" if self.length is None else f", {self.length:,} rows stored"
        return f"RoPE, theta {self.theta:,.0f}{part}{stored}"

    def records(self, at: At, width: Mapping[str, int]) -> Iterator[Record]:
        """The table, where it is stored: one for all layers."""
        del width
        if self.stored != "no" and self.length is not None and self.width is not None:
            axes = {"length": self.length, "rotated": self.width}
            yield at.weight("positions", axes, role=self.stored, table=True)


class RelativePositions(Component):
    """A number for each head and each bucket of distances, added to the scores (T5, arXiv 1910.10683, section 2.1).

    The table is one for all layers of a stack. buckets: rows of the table; half of them count single steps, the others
    reach further in growing ones, and in an encoder half of either are for later tokens. max_distance: from where on
    all distances are one bucket; it changes no count. per_layer: each layer has a table of its own (UMT5). of_sums:
    a second table, of distances between blocks, for the sums of blocks that attention of the kind local makes (LongT5).
    """

    kind: Literal["relative"] = "relative"
    buckets: Size = 32
    max_distance: Size = 128
    per_layer: Flag = False
    of_sums: Flag = False
    added: ClassVar[bool] = False
    rows: ClassVar[None] = None

    def summary(self) -> str:
        """One line for a reader."""
        return f"relative, {self.buckets:,} buckets{' in each layer' if self.per_layer else ''}"

    def rules(self, d_model: int) -> Iterator[Rule]:
        """Both halves of an encoder's buckets have single steps and growing ones."""
        yield self.buckets >= 4, "buckets {buckets} are fewer than 4"
        yield (
            self.buckets // 2 < self.max_distance,
            "max_distance {max_distance} is not above half the {buckets} buckets",
        )
        yield not (self.per_layer and self.of_sums), "`of_sums` is a table of all layers", "write `per_layer: false`"

    def records(self, at: At, width: Mapping[str, int]) -> Iterator[Record]:
        """Nothing is added to the embeddings."""
        del at, width
        yield from ()

    def bias_records(self, at: At, heads: int) -> Iterator[Record]:
        """A table of buckets x N."""
        yield at.weight("positions", {"buckets": self.buckets, "N": heads}, table=True)
        if self.of_sums:
            yield at.weight("sum_positions", {"buckets": self.buckets, "N": heads}, table=True)


class AlibiPositions(Component):
    """ALiBi (arXiv 2108.12409): scores fall with the distance, with a slope for each head; nothing is held.

    max_bias: the slopes of N heads are 2^(-max_bias · n / N), 8 in the paper (MPT's `alibi_bias_max`).
    slope_scale: what all slopes are multiplied by (1 / sqrt(head_dim) in Falcon).
    Neither changes a count.
    """

    kind: Literal["alibi"] = "alibi"
    max_bias: PositiveFloat = 8.0
    slope_scale: PositiveFloat = 1.0
    added: ClassVar[bool] = False
    rows: ClassVar[None] = None

    def summary(self) -> str:
        """One line for a reader."""
        return "ALiBi"

    def records(self, at: At, width: Mapping[str, int]) -> Iterator[Record]:
        """Nothing is held."""
        del at, width
        yield from ()


Positions = Annotated[
    NoPositions
    | LearnedPositions
    | SinusoidalPositions
    | RotaryPositions
    | RelativePositions
    | AlibiPositions
    | LearnedAndRelativePositions
    | RelativeRows,
    Field(discriminator="kind"),
]
OfDistances = RelativePositions | LearnedAndRelativePositions


def has_one_table(positions: Positions) -> TypeGuard[OfDistances]:
    """Whether a stack holds one table of biases for all of its layers."""
    return isinstance(positions, OfDistances) and not positions.per_layer
