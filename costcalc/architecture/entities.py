"""Entities beside the words of a text (LUKE, arXiv 2010.01057): what a model holds of them, and a text alone leaves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator

from costcalc.architecture.component import Component, Size, no_number
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At
from costcalc.inventory import Record, Weight


class Entities(Component):
    """A vocabulary of `rows` entities, whose rows are `width` wide and projected to the model's width if that differs.

    length: rows of their position table. token_types: of their type table. norm: of the sum of all these. predicts:
    whether a head tells a masked entity: a dense matrix to `width`, a norm, and the "tied" table of entities or its
    "own", with a bias. All of it is parameters; a pass over a text without entities multiplies by none.
    """

    rows: Size
    width: Size
    length: Size
    token_types: Size
    norm: Norm
    predicts: Annotated[Literal[False, "tied", "own"], BeforeValidator(no_number)] = False

    def records(self, at: At, d_model: int) -> Iterator[Record]:
        """E_V x W tables, W -> D, positions and types of D, a norm."""
        width = {"D": d_model}
        yield at.weight("embedding", {"entities": self.rows, "W": self.width}, table=True)
        if self.width != d_model:
            yield at.weight("projection", {"W": self.width, **width})
        yield at.weight("positions", {"length": self.length, **width}, table=True)
        yield at.weight("token_types", {"token_types": self.token_types, **width}, table=True)
        yield from self.norm.records(at, "embedding_norm", width)

    def head_records(self, at: At, d_model: int) -> Iterator[Record]:
        """D -> W, a norm, and the table, if it is not tied, with its bias."""
        if not self.predicts:
            return
        axes = {"entities": self.rows, "W": self.width}
        yield at.weight("transform", {"D": d_model, "W": self.width})
        yield at.weight("transform_bias", {"W": self.width})
        yield from self.norm.records(at, "norm", {"W": self.width})
        if self.predicts == "own":
            yield Weight(f"{at.path}.head", axes, table=True)
        yield at.weight("head_bias", {"entities": self.rows})
