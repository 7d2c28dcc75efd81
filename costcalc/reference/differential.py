"""Differential attention (arXiv 2410.05258, equations 1 and 3), as DiffLlama has it (`DiffLlamaAttention`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.grouped_query import join_heads, mixed_values, split_heads
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import norm
from costcalc.reference.on_scores import OfDistances
from costcalc.reference.positions import TURNED
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


def differential_attention(
    fields: Fields,
    x: Array,
    at: Scope,
    *,
    positions: Fields,
    sight: Sight,
    added: OfDistances | None = None,
    name: str | None = None,
) -> Array:
    """Self-attention of T new tokens over themselves and what the request holds. x: (B, T, D) -> (B, T, D)."""
    del name  # no other layer looks at these keys
    heads, kv_heads, head_dim, bias = (fields[key] for key in ("heads", "kv_heads", "head_dim", "bias"))
    turn, here = of_kind(TURNED, positions["kind"], "positions"), sight.start + np.arange(x.shape[1])  # (T)
    q = turn(positions, split_heads(at.linear("q", x, heads * head_dim, bias=bias), heads), here)  # (B, N, T, H)
    k = turn(positions, split_heads(at.linear("k", x, kv_heads * head_dim, bias=bias), kv_heads), here)  # (B, K, T, H)
    v = split_heads(at.linear("v", x, kv_heads * head_dim, bias=bias), kv_heads)  # (B, K, T, H)
    if sight.request is not None:
        k = sight.request.extended(at.named("k_cache"), k, window=fields["window"])  # (B, K, S, H)
        v = sight.request.extended(at.named("v_cache"), v, window=fields["window"])  # (B, K, S, H)
    first, second = np.split(v, 2, axis=1)  # (B, K/2, S, H) each
    wide = np.tile(np.concatenate([first, second], axis=-1), (1, 2, 1, 1))  # (B, K, S, 2H)
    how: dict[str, Any] = {"scale": fields["scale"], "window": fields["window"], "start": sight.start}
    mixed = mixed_values(q, k, wide, at, **how, causal=sight.causal, added=added)  # (B, N, T, 2H)
    kept, taken = np.split(mixed, 2, axis=1)  # (B, N/2, T, 2H) each
    start = started(sight.layer)
    left = kept - factor(at, head_dim, start) * taken  # (B, N/2, T, 2H)
    left = FLOAT(1 - start) * norm(fields["norm"], left, at, "norm")  # (B, N/2, T, 2H)
    return at.linear("output", join_heads(left), x.shape[-1], bias=bias)  # (B, T, N·H) x (N·H, D)


def started(layer: int) -> float:
    """0.8 - 0.6 e^(-0.3 l), the factor's beginning in layer l, from 0 on (section 2.1)."""
    return 0.8 - 0.6 * math.exp(-0.3 * layer)


def factor(at: Scope, head_dim: int, start: float) -> Array:
    """e^(q1·k1) - e^(q2·k2) + its beginning (equation 2): a single number."""
    q1, k1, q2, k2 = (at.parameter(f"lambda_{name}", head_dim) for name in ("q1", "k1", "q2", "k2"))  # (H) each
    return np.exp((q1 * k1).sum()) - np.exp((q2 * k2).sum()) + FLOAT(start)
