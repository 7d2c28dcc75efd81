"""AltUp, alternating updates (arXiv 2301.13310): a residual stream of several states, of which a layer computes one."""

from __future__ import annotations

from collections.abc import Iterator

from costcalc.architecture.component import Component, Rule, Size, Whole
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Matmul, Record


class AltUp(Component):
    """`inputs` states of d_model numbers each, as Gemma-3n has them (`Gemma3nTextAltUp`).

    Each layer predicts all states from all, by inputs x inputs numbers that it makes of one of them, number `active`.
    Only that one goes through its sublayers; what came of it corrects the others. The states are made of the embeddings
    below the first layer, by a square matrix for each but the active one, and brought together by as many above the
    last. What corrected the active state is multiplied by D numbers before a per-layer input reads it; nothing else
    does. active: changes no count.
    """

    inputs: Size
    active: Whole = 0

    def rules(self, d_model: int) -> Iterator[Rule]:
        """There is another state beside the active one."""
        yield self.inputs > 1, "inputs {inputs}: there is no other state beside the active one"
        yield self.active < self.inputs, "active {active}: the states are 0 to {inputs} - 1"

    def summary(self) -> str:
        """One line for a reader."""
        return f"{self.inputs} states (AltUp), of which layers compute number {self.active}"

    def below(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """The other states are made of the embeddings."""
        yield from self._others(at, "below", d_model, stream)

    def above(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """And brought back to the first one's place."""
        yield from self._others(at, "above", d_model, stream)

    def layer_records(self, at: At, d_model: int, stream: Stream, norm: Norm) -> Iterator[Record]:
        """Of one layer: a router that runs twice, before and behind the sublayers, and what is made of its numbers.

        `mixing` multiplies the states by the coefficients that were predicted, two activations, and is no attention
        core: its role is "weight", so that it counts with all other products that are exact.
        """
        here, width, states = at.under("altup"), {"D": d_model}, {"A": self.inputs}
        row, rows = stream.rows.letters, stream.rows
        yield from norm.records(here, "router_norm", width)
        yield here.weight("router", {**width, **states})
        yield here.product("router", {row: rows, "runs": 2, **width, **states})
        yield from here.linear("prediction", rows, states, {"A_from": self.inputs, "A_to": self.inputs}, bias=False)
        mixed = {"A_from": self.inputs, "A_to": self.inputs}
        yield Matmul(f"{here.path}.mixing", {row: rows, **width, **mixed}, here.times)
        yield from here.linear("correction", rows, states, {"A_to": self.inputs}, bias=False)
        yield here.weight("output_scale", width)

    def _others(self, at: At, name: str, d_model: int, stream: Stream) -> Iterator[Record]:
        others = {"A_more": self.inputs - 1, "D": d_model}
        yield from at.under("altup").linear(name, stream.rows, others, {"D_out": d_model}, bias=False)
