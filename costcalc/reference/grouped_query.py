"""Attention with grouped key/value heads (arXiv 2305.13245), pass by pass with what is cached (arXiv 1911.02150)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from costcalc.reference.arrays import Array, Fields
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import norm
from costcalc.reference.positions import TURNED
from costcalc.reference.request import Request
from costcalc.reference.scaled_dot_product import attention_weights, first_seen
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


def grouped_query(fields: Fields, x: Array, at: Scope, *, positions: Fields, request: Request) -> Array:
    """Self-attention of T new tokens over themselves and what the request holds. x: (B, T, D) -> (B, T, D)."""
    d_model, heads = x.shape[-1], fields["heads"]
    kv_heads = fields["kv_heads"] or heads
    head_dim = fields["head_dim"] or d_model // heads

    def projected(name: str, count: int) -> Array:
        y = at.linear(name, x, count * head_dim, bias=fields["bias"])  # (B, T, D) x (D, count·H)
        if fields["qk_norm"] is None:
            return split_heads(y, count)  # (B, count, T, H)
        normed = of_kind(QK_NORMS, fields["qk_norm"]["kind"], "QK-norm")
        return normed(fields["qk_norm"], y, count, at, f"{name}_norm")  # (B, count, T, H)

    here = request.past + np.arange(x.shape[1])  # (T)
    turn = of_kind(TURNED, positions["kind"], "positions")
    q = turn(positions, projected("q", heads), here)  # (B, N, T, H)
    k = turn(positions, projected("k", kv_heads), here)  # (B, K, T, H)
    v = split_heads(at.linear("v", x, kv_heads * head_dim, bias=fields["bias"]), kv_heads)  # (B, K, T, H)
    keys = request.extended(at.named("k_cache"), k, window=fields["window"])  # (B, K, S, H)
    values = request.extended(at.named("v_cache"), v, window=fields["window"])  # (B, K, S, H)
    scale = 1 / math.sqrt(head_dim) if fields["scale"] is None else fields["scale"]
    mixed = mixed_values(q, keys, values, at, window=fields["window"], scale=scale, softcap=fields["softcap"])
    return at.linear("output", join_heads(mixed), d_model, bias=fields["out_bias"])  # (B, T, N·H) x (N·H, D)


def mixed_values(
    q: Array, keys: Array, values: Array, at: Scope, *, window: int | None, scale: float, softcap: float | None
) -> Array:
    """The weighted mean of the values for each query, which meets only the keys it may see.

    q: (B, N, T, H), the last T of the S positions; keys, values: (B, K, S, H); result: (B, N, T, H). Query head n reads
    key head n // G, with G = N / K.
    """
    batch, heads, tokens, head_dim = q.shape
    kv_heads, seen = keys.shape[1], keys.shape[2]
    groups = q.reshape(batch, kv_heads, heads // kv_heads, tokens, head_dim)  # (B, K, G, T, H)
    mixed = np.empty_like(groups)  # (B, K, G, T, H)
    for token in range(tokens):
        last = seen - tokens + token
        sees = slice(first_seen(last, window), last + 1)  # s of the S keys
        scores = at.product("scores", groups[..., token, :], keys[:, :, sees].swapaxes(-1, -2))  # (B, K, G, s)
        weights = attention_weights(scores, scale=scale, softcap=softcap)  # (B, K, G, s)
        at.tape.watch_rows(weights)
        mixed[..., token, :] = at.product("values", weights, values[:, :, sees])  # (B, K, G, s) x (B, K, s, H)
    return mixed.reshape(batch, heads, tokens, head_dim)
