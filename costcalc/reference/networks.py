"""Position-wise feed-forward networks, alone or as the experts of a mixture."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

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

    gpt-oss (arXiv 2508.10925) bounds the gate from above and the other factor from both sides, and adds 1
    to that factor. x: (B, T, D) -> (B, T, D).
    """
    activation = of_kind(ACTIVATIONS, fields["activation"], "activation")
    gate = at.linear("gate", x, fields["d_ff"], bias=fields["bias"])  # (B, T, F)
    up = at.linear("up", x, fields["d_ff"], bias=fields["bias"])  # (B, T, F)
    if fields["limit"] is not None:
        gate, up = np.minimum(gate, fields["limit"]), np.clip(up, -fields["limit"], fields["limit"])  # (B, T, F) each
    hidden = activation(gate) * (up + fields["up_shift"])  # (B, T, F)
    return at.linear("down", hidden, x.shape[-1], bias=fields["bias"])  # (B, T, F) x (F, D)


NETWORKS: dict[str, Callable[[Fields, Array, Scope], Array]] = {"dense": dense, "gated": gated}
