"""Position-wise feed-forward networks, alone or as the experts of a mixture."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from costcalc.reference.activations import ACTIVATIONS
from costcalc.reference.arrays import FLOAT, Array, Fields
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
    to that factor. Gemma-3n leaves few numbers of a gate. x: (B, T, D) -> (B, T, D).
    """
    activation = of_kind(ACTIVATIONS, fields["activation"], "activation")
    gate = at.linear("gate", x, fields["d_ff"], bias=fields["bias"])  # (B, T, F)
    up = at.linear("up", x, fields["d_ff"], bias=fields["bias"])  # (B, T, F)
    if fields["limit"] is not None:
        gate, up = np.minimum(gate, fields["limit"]), np.clip(up, -fields["limit"], fields["limit"])  # (B, T, F) each
    if fields["sparsity"]:
        gate = sparse(gate, fields["sparsity"])  # (B, T, F)
    hidden = activation(gate) * (up + fields["up_shift"])  # (B, T, F)
    return at.linear("down", hidden, x.shape[-1], bias=fields["bias"])  # (B, T, F) x (F, D)


def sparse(x: Array, share: float) -> Array:
    """Of each row what lies above its mean by so many deviations that of normal numbers `share` would be below; else 0.

    The statistical top-k of arXiv 2506.06644, section 3.2. (B, T, F) -> (B, T, F).
    """
    mean, deviation = x.mean(axis=-1, keepdims=True), x.std(axis=-1, keepdims=True)  # (B, T, 1) each
    return np.maximum(x - (mean + deviation * FLOAT(NormalDist().inv_cdf(share))), 0)


NETWORKS: dict[str, Callable[[Fields, Array, Scope], Array]] = {"dense": dense, "gated": gated}
