"""Position information: none, a learned table, the sinusoids of 2017, or rotary embeddings.

`added` kinds are added to the token embeddings once, at the bottom of a stack; the others act inside each attention,
so a layer may have its own. `rows` is how many positions a table has, None where there is no end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from costcalc.architecture.component import Component, PositiveFloat, Rule, Size
from costcalc.architecture.places import At
from costcalc.inventory import Record


class NoPositions(Component):
    """No position information in this layer or stack."""

    kind: Literal["none"] = "none"
    added: ClassVar[bool] = False
    rows: ClassVar[None] = None

    def summary(self) -> str:
        """One line for a reader."""
        return "none"

    def records(self, at: At, d_model: int) -> Iterator[Record]:
        """Nothing is held."""
        del at, d_model
        yield from ()


class LearnedPositions(Component):
    """A trained table of `length` rows, added to the embeddings; longer texts have no row (GPT-2, BERT)."""

    kind: Literal["learned"] = "learned"
    length: Size
    added: ClassVar[bool] = True

    @property
    def rows(self) -> int:
        """Those of the table."""
        return self.length

    def summary(self) -> str:
        """One line for a reader."""
        return f"learned, {self.length:,} rows"

    def records(self, at: At, d_model: int) -> Iterator[Record]:
        """One table of length x d_model."""
        yield at.weight("positions", {"length": self.length, "D": d_model}, table=True)


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

    def records(self, at: At, d_model: int) -> Iterator[Record]:
        """The table, where it is stored."""
        if self.stored != "no" and self.length is not None:
            yield at.weight("positions", {"length": self.length, "D": d_model}, role=self.stored, table=True)


class RotaryPositions(Component):
    """RoPE (arXiv 2104.09864): queries and keys are rotated, nothing is held.

    theta: the base of the frequencies. rotary_dim: how many of each head's `head_dim` numbers are rotated, None for all
    (partial rotary: Phi, GPT-J, NeoX); of an odd number of them the last is not rotated.
    """

    kind: Literal["rope"] = "rope"
    theta: PositiveFloat = 10_000.0
    rotary_dim: Size | None = None
    added: ClassVar[bool] = False
    rows: ClassVar[None] = None

    def left_out(self, d_model: int) -> dict[str, tuple[Any, str]]:
        """All numbers of a head are rotated, whatever its size."""
        return {"rotary_dim": (None, "all")}

    def summary(self) -> str:
        """One line for a reader."""
        part = "" if self.rotary_dim is None else f", {self.rotary_dim} numbers of each head"
        return f"RoPE, theta {self.theta:,.0f}{part}"

    def records(self, at: At, d_model: int) -> Iterator[Record]:
        """Nothing is held."""
        del at, d_model
        yield from ()


Positions = Annotated[
    NoPositions | LearnedPositions | SinusoidalPositions | RotaryPositions, Field(discriminator="kind")
]
