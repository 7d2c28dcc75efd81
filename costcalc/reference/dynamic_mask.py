"""Dynamic mask attention (Doge, arXiv 2412.11834; `DogeAttention`)."""

from __future__ import annotations

import math

import numpy as np

from costcalc.reference.activations import softplus
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.grouped_query import join_heads, split_heads
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import norm
from costcalc.reference.on_scores import OfDistances
from costcalc.reference.positions import TURNED
from costcalc.reference.scaled_dot_product import attention_weights
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


def dynamic_mask_attention(
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
    q = split_heads(at.linear("q", x, heads * head_dim, bias=bias), heads)  # (B, N, T, H)
    k = split_heads(at.linear("k", x, kv_heads * head_dim, bias=bias), kv_heads)  # (B, K, T, H)
    q, k = norm(fields["norm"], q, at, "q_norm"), norm(fields["norm"], k, at, "k_norm")
    q, k = turn(positions, q, here), turn(positions, k, here)
    v = split_heads(at.linear("v", x, kv_heads * head_dim, bias=bias), kv_heads)  # (B, K, T, H)
    if sight.request is not None:
        k = sight.request.extended(at.named("k_cache"), k, window=None)  # (B, K, S, H)
        v = sight.request.extended(at.named("v_cache"), v, window=None)  # (B, K, S, H)
    worth = at.linear("worth", join_heads(v), kv_heads, bias=bias)  # (B, S, K·H) x (K·H, K)
    worth = np.exp(at.parameter("worth_gain", kv_heads) * softplus(worth)).swapaxes(1, 2)  # (B, K, S)
    mixed = of_best_keys(fields, q, k, v, worth, at, added=added)  # (B, N, T, H)
    return at.linear("output", join_heads(mixed), x.shape[-1], bias=bias)  # (B, T, N·H) x (N·H, D)


def of_best_keys(
    fields: Fields, q: Array, k: Array, v: Array, worth: Array, at: Scope, *, added: OfDistances | None
) -> Array:
    """The weighted mean of the values of the best keys that each query may see. (B, N, T, H) -> (B, N, T, H).

    k, v: (B, K, S, H); worth: (B, K, S), added to scores. Query head n reads key head n // (N / K).
    """
    batch, heads, tokens, head_dim = q.shape
    kv_heads, seen = k.shape[1], k.shape[2]
    scale = fields["scale"] or 1 / math.sqrt(head_dim)
    groups = q.reshape(batch, kv_heads, heads // kv_heads, tokens, head_dim)  # (B, K, G, T, H)
    mixed = np.empty_like(groups)  # (B, K, G, T, H)
    for token in range(tokens):
        place = seen - tokens + token  # among the S
        best = np.argsort(-worth[..., : place + 1], axis=-1, kind="stable")[..., : fields["keys"]]
        best = np.sort(best, axis=-1)  # (B, K, s)
        met, valued = (np.take_along_axis(each, best[..., None], axis=2) for each in (k, v))  # (B, K, s, H)
        more = np.take_along_axis(worth, best, axis=-1)[:, :, None]  # (B, K, 1, s)
        if added is not None:
            of_all = added(np.arange(place + 1) - place).reshape(*groups.shape[1:3], -1)  # (K, G, place + 1)
            spread = np.broadcast_to(of_all, (batch, *of_all.shape))  # (B, K, G, place + 1)
            places = np.broadcast_to(best[:, :, None], (*spread.shape[:-1], best.shape[-1]))  # (B, K, G, s)
            more = more + np.take_along_axis(spread, places, axis=-1).astype(FLOAT)  # (B, K, G, s)
        scores = at.product("scores", groups[..., token, :], met.swapaxes(-1, -2))  # (B, K, G, s)
        weights = attention_weights(scores, scale=scale, added=more)  # (B, K, G, s)
        at.tape.watch_rows(weights)
        mixed[..., token, :] = at.product("values", weights, valued)  # (B, K, G, s) x (B, K, s, H)
    return mixed.reshape(q.shape)
