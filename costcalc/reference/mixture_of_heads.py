"""A mixture of attention heads (arXiv 2210.05144, section 3), as JetMoE has it (`JetMoeMoA`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.grouped_query import mixed_values, split_heads
from costcalc.reference.kinds import of_kind
from costcalc.reference.mixture import largest
from costcalc.reference.on_scores import OfDistances
from costcalc.reference.positions import TURNED
from costcalc.reference.scaled_dot_product import softmax
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


def mixture_of_heads(
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
    kv_heads, head_dim, experts = (fields[key] for key in ("kv_heads", "head_dim", "experts"))
    batch, tokens, width = x.shape
    rows, used = x.reshape(-1, width), fields["heads"] // kv_heads  # (B·T, D)
    logits = at.linear("router", rows, experts, bias=False)  # (B·T, D) x (D, E)
    chosen = largest(logits, used)  # (B·T, X)
    weights = softmax(np.take_along_axis(logits, chosen, axis=-1))  # (B·T, X)
    there, inner = at.under("experts"), kv_heads * head_dim
    q = of_each(there, "q", np.repeat(rows[:, None], used, axis=1), chosen, experts, inner)  # (B·T, X, K·H)
    q = q.reshape(batch, tokens, used, kv_heads, head_dim).transpose(0, 3, 2, 1, 4)  # (B, K, X, T, H)
    turn, here = of_kind(TURNED, positions["kind"], "positions"), sight.start + np.arange(tokens)  # (T)
    q = turn(positions, q.reshape(batch, kv_heads * used, tokens, head_dim), here)  # (B, K·X, T, H)
    k = turn(positions, split_heads(at.linear("k", x, inner, bias=False), kv_heads), here)  # (B, K, T, H)
    v = split_heads(at.linear("v", x, inner, bias=False), kv_heads)  # (B, K, T, H)
    if sight.request is not None:
        k = sight.request.extended(at.named("k_cache"), k, window=fields["window"])  # (B, K, S, H)
        v = sight.request.extended(at.named("v_cache"), v, window=fields["window"])  # (B, K, S, H)
    how: dict[str, Any] = {"scale": fields["scale"], "window": fields["window"], "start": sight.start}
    mixed = mixed_values(q, k, v, at, **how, causal=sight.causal, added=added)  # (B, K·X, T, H)
    mixed = mixed.reshape(batch, kv_heads, used, tokens, head_dim).transpose(0, 3, 2, 1, 4)  # (B, T, X, K, H)
    gathered = mixed.reshape(batch * tokens, used, inner)  # (B·T, X, K·H)
    back = of_each(there, "output", gathered, chosen, experts, width)  # (B·T, X, D)
    y = (back * weights[..., None]).sum(axis=1, dtype=FLOAT)  # (B·T, D)
    if fields["out_bias"]:
        y = y + at.parameter("output_bias", width)  # (B·T, D) + (D)
    return y.reshape(x.shape)


def of_each(at: Scope, name: str, x: Array, chosen: Array, experts: int, outputs: int) -> Array:
    """What goes to an expert, times the matrix of this name of that expert. x: (r, X, any); chosen: (r, X).

    Of no rows one expert: all of their weights are held. Result: (r, X, outputs).
    """
    y = np.zeros((*x.shape[:2], outputs), FLOAT)
    for expert in np.unique(chosen) if len(x) else [0]:
        row, slot = np.nonzero(chosen == expert)  # (n) each
        y[row, slot] = at.one_of(int(expert), experts).linear(name, x[row, slot], outputs, bias=False)
    return y
