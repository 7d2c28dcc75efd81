"""Attention with grouped key/value heads (arXiv 2305.13245), pass by pass with what is cached (arXiv 1911.02150)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from costcalc.reference.arrays import Array, Fields
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import norm
from costcalc.reference.on_scores import OfDistances
from costcalc.reference.positions import TURNED
from costcalc.reference.scaled_dot_product import attention_weights, seen_from
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


def split_heads(x: Array, heads: int) -> Array:
    """(B, T, heads·H) -> (B, heads, T, H): each head reads H of the numbers (arXiv 1706.03762, section 3.2.2).

    Raises ValueError for another shape, or heads that do not divide it.
    """
    x = np.asarray(x)
    if x.ndim != 3 or heads < 1 or x.shape[-1] % heads:
        raise ValueError(f"(B, T, heads·H) is needed, with {heads} heads, not {x.shape}")
    batch, tokens, width = x.shape
    return x.reshape(batch, tokens, heads, width // heads).transpose(0, 2, 1, 3)


def join_heads(x: Array) -> Array:
    """(B, heads, T, H) -> (B, T, heads·H): the heads' outputs beside each other (arXiv 1706.03762, section 3.2.2).

    Raises ValueError for another shape.
    """
    x = np.asarray(x)
    if x.ndim != 4:
        raise ValueError(f"(B, heads, T, H) is needed, not {x.shape}")
    batch, heads, tokens, head_dim = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, tokens, heads * head_dim)


def per_head(fields: Fields, x: Array, heads: int, at: Scope, name: str) -> Array:
    """One norm over each head's H numbers, with one gain for all heads (arXiv 2302.05442; Qwen3, 2505.09388).

    (B, T, heads·H) -> (B, heads, T, H).
    """
    return norm(fields["norm"], split_heads(x, heads), at, name)


def projection(fields: Fields, x: Array, heads: int, at: Scope, name: str) -> Array:
    """One norm over all heads' numbers together (OLMo-2, arXiv 2501.00656). (B, T, heads·H) -> (B, heads, T, H)."""
    return split_heads(norm(fields["norm"], x, at, name), heads)


QK_NORMS: dict[str, Callable[[Fields, Array, int, Scope, str], Array]] = {
    "per_head": per_head,
    "projection": projection,
}


def grouped_query(
    fields: Fields, x: Array, at: Scope, *, positions: Fields, sight: Sight, added: OfDistances | None = None
) -> Array:
    """Self-attention of T new tokens over themselves and what the request holds. x: (B, T, D) -> (B, T, D)."""
    here = sight.start + np.arange(x.shape[1])  # (T)
    turn = of_kind(TURNED, positions["kind"], "positions")
    q, k, v = queries(fields, x, at), *keys_and_values(fields, x, at, d_model=x.shape[-1])
    q, k = turn(positions, q, here), turn(positions, k, here)  # (B, N, T, H), (B, K, T, H)
    if sight.request is not None:
        k = sight.request.extended(at.named("k_cache"), k, window=fields["window"])  # (B, K, S, H)
        v = sight.request.extended(at.named("v_cache"), v, window=fields["window"])  # (B, K, S, H)
    factors = {name: fields[name] for name in ("scale", "softcap", "window")}
    mixed = mixed_values(q, k, v, at, **factors, causal=sight.causal, added=added)  # (B, N, T, H)
    return at.linear("output", join_heads(mixed), x.shape[-1], bias=fields["out_bias"])  # (B, T, N·H) x (N·H, D)


def cross_grouped_query(fields: Fields, x: Array, at: Scope, *, sight: Sight) -> Array:
    """Attention of T new tokens over another stack's M (arXiv 1706.03762, section 3.2.3), which stand nowhere.

    Keys and values are made in the pass that starts a request, and kept for later ones. x: (B, T, D) -> (B, T, D).
    """
    if sight.request is None or sight.memory is None:
        raise ValueError("cross-attention needs tokens to look at, and a request that keeps them")
    q, k, v = queries(fields, x, at), *keys_and_values(fields, sight.memory, at, d_model=x.shape[-1])
    keys = sight.request.once(at.named("k_cache"), k)  # (B, K, M, H)
    values = sight.request.once(at.named("v_cache"), v)  # (B, K, M, H)
    factors = {name: fields[name] for name in ("scale", "softcap")}
    mixed = mixed_values(q, keys, values, at, **factors, causal=False)  # (B, N, T, H)
    return at.linear("output", join_heads(mixed), x.shape[-1], bias=fields["out_bias"])  # (B, T, N·H) x (N·H, D)


def queries(fields: Fields, x: Array, at: Scope) -> Array:
    """(B, T, D) -> (B, N, T, H)."""
    return _projected(fields, x, at, "q", fields["heads"], d_model=x.shape[-1])


def keys_and_values(fields: Fields, x: Array, at: Scope, *, d_model: int) -> tuple[Array, Array]:
    """(B, S, D) -> (B, K, S, H) twice."""
    kv_heads = fields["kv_heads"] or fields["heads"]
    k = _projected(fields, x, at, "k", kv_heads, d_model=d_model)
    v = at.linear("v", x, kv_heads * _head_dim(fields, d_model), bias=fields["bias"])  # (B, S, D) x (D, K·H)
    return k, split_heads(v, kv_heads)


def _head_dim(fields: Fields, d_model: int) -> int:
    size: int = fields["head_dim"] or d_model // fields["heads"]
    return size


def _projected(fields: Fields, x: Array, at: Scope, name: str, count: int, *, d_model: int) -> Array:
    y = at.linear(name, x, count * _head_dim(fields, d_model), bias=fields["bias"])  # (B, T, D) x (D, count·H)
    if fields["qk_norm"] is None:
        return split_heads(y, count)  # (B, count, T, H)
    normed = of_kind(QK_NORMS, fields["qk_norm"]["kind"], "QK-norm")
    return normed(fields["qk_norm"], y, count, at, f"{name}_norm")  # (B, count, T, H)


def mixed_values(
    q: Array,
    keys: Array,
    values: Array,
    at: Scope,
    *,
    scale: float | None = None,
    softcap: float | None = None,
    window: int | None = None,
    causal: bool = True,
    added: OfDistances | None = None,
) -> Array:
    """The weighted mean of the values for each query, which meets only the keys it may see.

    q: (B, N, T, H); keys, values: (B, K, S, H); result: (B, N, T, H). Causal, the queries are the last T of the S
    positions, otherwise they are at the first. Query head n reads key head n // G, with G = N / K. scale: None for
    1 / √H.
    """
    batch, heads, tokens, head_dim = q.shape
    kv_heads, seen = keys.shape[1], keys.shape[2]
    scale = 1 / math.sqrt(head_dim) if scale is None else scale
    groups = q.reshape(batch, kv_heads, heads // kv_heads, tokens, head_dim)  # (B, K, G, T, H)
    mixed = np.empty_like(groups)  # (B, K, G, T, H)
    for token in range(tokens):
        place = seen - tokens + token if causal else token
        sees = seen_from(place, seen, causal=causal, window=window)  # s of the S keys
        scores = at.product("scores", groups[..., token, :], keys[:, :, sees].swapaxes(-1, -2))  # (B, K, G, s)
        more = None if added is None else added(np.arange(seen)[sees] - place).reshape(*groups.shape[1:3], -1)
        weights = attention_weights(scores, scale=scale, softcap=softcap, added=more)  # (B, K, G, s)
        at.tape.watch_rows(weights)
        mixed[..., token, :] = at.product("values", weights, values[:, :, sees])  # (B, K, G, s) x (B, K, s, H)
    return mixed.reshape(batch, heads, tokens, head_dim)
