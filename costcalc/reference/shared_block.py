"""A transformer block that several layers share (Zamba, arXiv 2405.16712, section 2; Zamba-2, 2411.15242)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from costcalc.reference.arrays import Array, Fields
from costcalc.reference.grouped_query import grouped_query
from costcalc.reference.kinds import of_kind
from costcalc.reference.networks import NETWORKS
from costcalc.reference.norms import norm
from costcalc.reference.on_scores import ON_SCORES
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


@dataclass(frozen=True, slots=True)
class Adapted(Scope):
    """A place where something is added to what a product gives. added: by the product's name, (..., outputs)."""

    added: Mapping[str, Array] = field(default_factory=dict)

    def linear(self, name: str, x: Array, outputs: int, *, bias: bool, groups: int | None = None) -> Array:
        """x W, or x W + b, and what is added: (..., inputs) -> (..., outputs)."""
        y = Scope.linear(self, name, x, outputs, bias=bias, groups=groups)
        return y + self.added[name] if name in self.added else y


def shared_block(layer: Fields, x: Array, at: Scope, *, sight: Sight) -> Array:
    """What a layer's mixer reads beside the residual stream (equation 6, figure 2). (B, T, D) -> (B, T, D).

    layer: its fields. The block reads the stream and the embeddings side by side, 2D numbers, and has no residual sums.
    Its weights are those of the first equal layer; of each layer's own are the projection of what comes out, and
    products of a low rank beside those of the block (Zamba-2, figure 2).
    """
    if sight.embeddings is None:
        raise ValueError(f"{at.path} joins its input with the embeddings, and is given none")
    fields, normed, own = layer["shared_block"], layer["norm"], at.under("shared_block")
    lent = replace(own, lender=_lender(layer, at, sight))
    joined = norm(normed, np.concatenate([x, sight.embeddings], axis=-1), lent, "attention_norm")  # (B, T, 2D)
    y = _attended(layer, joined, lent, _of_queries(fields, joined, own.under("adapters")), sight=sight)  # (B, T, D)
    y = norm(normed, y, lent, "feed_forward_norm")  # (B, T, D)
    some = fields["feed_forward"]
    there = _adapted(lent.under("feed_forward"), _of_network(fields, y, own.under("adapters")))
    y = of_kind(NETWORKS, some["kind"], "shared network")(some, y, there)  # (B, T, D)
    return own.linear("linear", y, x.shape[-1], bias=False)  # (B, T, D) x (D, D)


def _lender(layer: Fields, at: Scope, sight: Sight) -> str | None:
    """The place whose weights these are; None for the first layer of all that are equal, which holds them."""
    same = {name: value for name, value in layer.items() if name != "repeat"}
    for others, path in sight.shared:
        if others == same:
            return f"{path}.shared_block"
    sight.shared.append((same, at.path))
    return None


def _attended(layer: Fields, joined: Array, lent: Scope, added: Mapping[str, Array], *, sight: Sight) -> Array:
    """Attention whose queries, keys and values are made of 2D numbers, and its output D. (B, T, 2D) -> (B, T, D)."""
    some, positions, here = layer["shared_block"]["attention"], layer["positions"], lent.under("attention")
    on_scores = of_kind(ON_SCORES, positions["kind"], "positions")(positions, some["heads"], here, sight)
    width = joined.shape[-1] // 2
    there = _adapted(here, added)
    return grouped_query(some, joined, there, positions=positions, sight=sight, added=on_scores, d_model=width)


def _of_queries(fields: Fields, joined: Array, own: Scope) -> dict[str, Array]:
    """x A B beside queries, keys and values. (B, T, 2D) -> (B, T, 2D) each."""
    rank = fields["attention_adapter_rank"]
    return {} if rank is None else {name: _low_rank(name, joined, own, rank, joined.shape[-1]) for name in "qkv"}


def _of_network(fields: Fields, y: Array, own: Scope) -> dict[str, Array]:
    """One x A B beside both first matrices of a gated network. (B, T, D) -> (B, T, F) each."""
    rank = fields["feed_forward_adapter_rank"]
    if rank is None:
        return {}
    gate, up = np.split(_low_rank("gate_up", y, own, rank, 2 * fields["feed_forward"]["d_ff"]), 2, axis=-1)
    return {"gate": gate, "up": up}


def _low_rank(name: str, x: Array, own: Scope, rank: int, outputs: int) -> Array:
    """(..., inputs) x (inputs, R) x (R, outputs)."""
    return own.linear(f"{name}_up", own.linear(f"{name}_down", x, rank, bias=False), outputs, bias=False)


def _adapted(at: Scope, added: Mapping[str, Array]) -> Adapted:
    return Adapted(at.tape, at.path, at.lender, at.member, added=added)
