"""Position-wise feed-forward networks, alone or as the experts of a mixture."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from costcalc.reference.activations import ACTIVATIONS, sigmoid, softplus
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import norm
from costcalc.reference.scaled_dot_product import soft_cap
from costcalc.reference.tape import Scope


def dense(fields: Fields, x: Array, at: Scope) -> Array:
    """activation(x W_up + b) W_down + b (arXiv 1706.03762, equation 2). x: (B, T, D) -> (B, T, D)."""
    made = at.linear("up", x, fields["d_ff"], bias=fields["bias"], groups=fields.get("up_groups"))  # (B, T, F)
    hidden = activated(fields["activation"], made, at)  # (B, T, F)
    groups = fields.get("down_groups")
    return at.linear("down", hidden, x.shape[-1], bias=fields["bias"], groups=groups)  # (B, T, F) x (F, D)


def gated(fields: Fields, x: Array, at: Scope, *, parts: Array | None = None) -> Array:
    """(activation(x W_gate) * x W_up) W_down (arXiv 2002.05202, equation 6), and a bias on each where a model has it.

    gpt-oss (arXiv 2508.10925) bounds the gate from above and the other factor from both sides, and adds 1
    to that factor. Gemma-3n leaves few numbers of a gate. x: (B, T, D) -> (B, T, D). parts: (B, T, p), what each of p
    equal parts of the d_ff numbers is multiplied by (Inkling).
    """
    gate = at.linear("gate", x, fields["d_ff"], bias=fields["bias"])  # (B, T, F)
    up = at.linear("up", x, fields["d_ff"], bias=fields["bias"])  # (B, T, F)
    if fields["gains"]:  # both around √D to begin with (nGPT, arXiv 2410.01131, section 2.4.2)
        gate, up = (y * at.gain(f"{name}_gain", fields["d_ff"]) for name, y in (("gate", gate), ("up", up)))
        gate, up = gate * FLOAT(x.shape[-1] ** 0.5), up * FLOAT(x.shape[-1] ** 0.5)  # (B, T, F) each
    if fields["limit"] is not None:
        gate, up = np.minimum(gate, fields["limit"]), np.clip(up, -fields["limit"], fields["limit"])  # (B, T, F) each
    if fields["sparsity"]:
        gate = sparse(gate, fields["sparsity"])  # (B, T, F)
    shown = activated(fields["activation"], gate, at)  # (B, T, F)
    if fields.get("gate_cap"):  # silu is x · sigmoid(x), and only the first x is bounded (Inkling-2)
        shown = soft_cap(gate, fields["gate_cap"]) * sigmoid(gate)
    hidden = shown * (soft_cap(up, fields.get("up_cap")) + fields["up_shift"])  # (B, T, F)
    if parts is not None:
        hidden = hidden * np.repeat(parts, fields["d_ff"] // parts.shape[-1], axis=-1)  # (B, T, F) twice
    if fields["inner_norm"] is not None:
        hidden = norm(fields["inner_norm"], hidden, at, "inner_norm")  # (B, T, F)
    y = at.linear("down", hidden, x.shape[-1], bias=fields["bias"] or fields["out_bias"])  # (B, T, F) x (F, D)
    return y * at.gain("out_gain", 1) if fields.get("out_gain") else y


def activated(name: str, x: Array, at: Scope) -> Array:
    """An activation, which may hold numbers of its own. (B, T, F) -> (B, T, F)."""
    return xielu(x, at) if name == "xielu" else of_kind(ACTIVATIONS, name, "activation")(x)


def xielu(x: Array, at: Scope) -> Array:
    """a x² + b x above 0, and n (e^min(x, eps) - 1 - x) + b x up to it (arXiv 2411.13010, equation 14).

    a is softplus of a learned number, n is b and softplus of another; b and eps are held. (B, T, F) -> (B, T, F).
    """
    alpha_p, alpha_n = (softplus(at.parameter(f"activation_{name}", 1)) for name in ("alpha_p", "alpha_n"))
    beta, eps = (at.parameter(f"activation_{name}", 1, role="buffer") for name in ("beta", "eps"))
    below = (beta + alpha_n) * (np.expm1(np.minimum(x, eps)) - x)  # (B, T, F)
    return np.where(x > 0, alpha_p * x * x, below) + beta * x


def sparse(x: Array, share: float) -> Array:
    """Of each row what lies above its mean by so many deviations that of normal numbers `share` would be below; else 0.

    The statistical top-k of arXiv 2506.06644, section 3.2. (B, T, F) -> (B, T, F).
    """
    mean, deviation = x.mean(axis=-1, keepdims=True), x.std(axis=-1, keepdims=True)  # (B, T, 1) each
    return np.maximum(x - (mean + deviation * FLOAT(NormalDist().inv_cdf(share))), 0)


NETWORKS: dict[str, Callable[[Fields, Array, Scope], Array]] = {"dense": dense, "gated": gated}
