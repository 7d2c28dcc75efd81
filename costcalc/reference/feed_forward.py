"""Position-wise feed-forward networks."""

from __future__ import annotations

from collections.abc import Callable

from costcalc.reference.activations import ACTIVATIONS
from costcalc.reference.arrays import Array, Fields
from costcalc.reference.kinds import of_kind
from costcalc.reference.tape import Scope


def dense(fields: Fields, x: Array, at: Scope) -> Array:
    """activation(x W_up + b) W_down + b (arXiv 1706.03762, equation 2). x: (B, T, D) -> (B, T, D)."""
    activation = of_kind(ACTIVATIONS, fields["activation"], "activation")
    hidden = activation(at.linear("up", x, fields["d_ff"], bias=fields["bias"]))  # (B, T, F)
    return at.linear("down", hidden, x.shape[-1], bias=fields["bias"])  # (B, T, F) x (F, D)


def gated(fields: Fields, x: Array, at: Scope) -> Array:
    """(activation(x W_gate) * x W_up) W_down (arXiv 2002.05202, equation 6), and a bias on each where a model has it.

    x: (B, T, D) -> (B, T, D).
    """
    activation = of_kind(ACTIVATIONS, fields["activation"], "activation")
    gate = activation(at.linear("gate", x, fields["d_ff"], bias=fields["bias"]))  # (B, T, F)
    up = at.linear("up", x, fields["d_ff"], bias=fields["bias"])  # (B, T, F)
    return at.linear("down", gate * up, x.shape[-1], bias=fields["bias"])  # (B, T, F) x (F, D)


FEED_FORWARD: dict[str, Callable[[Fields, Array, Scope], Array]] = {"dense": dense, "gated": gated}
