"""Compressed convolutional attention (arXiv 2510.04476), as ZAYA1 has it (`ZayaCCAProjection`, `ZayaQKNorm`).

The class holds the inputs of both convolutions' reach and convolves some places twice. Here what the second convolution
looks back to is held as the first one made it: as many numbers, and no product is made twice.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.grouped_query import join_heads, mixed_values, split_heads
from costcalc.reference.kinds import of_kind
from costcalc.reference.on_scores import OfDistances
from costcalc.reference.positions import TURNED
from costcalc.reference.recurrence import held_states, hold_states, kept_of
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope

SMALLEST = FLOAT(np.finfo(FLOAT).eps)
"""What a length is taken for that is smaller."""


def convolved_attention(
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
    turn, here = of_kind(TURNED, positions["kind"], "positions"), sight.start + np.arange(x.shape[1])  # (T)
    q, k = queries_and_keys(fields, x, at, sight)  # (B, N, T, H), (B, K, T, H)
    v = delayed_values(fields, x, at, sight)  # (B, K, T, H)
    q, k = turn(positions, q, here), turn(positions, k, here)
    if sight.request is not None:
        k = sight.request.extended(at.named("k_cache"), k, window=fields["window"])  # (B, K, S, H)
        v = sight.request.extended(at.named("v_cache"), v, window=fields["window"])  # (B, K, S, H)
    factors: dict[str, Any] = {"scale": fields["scale"], "window": fields["window"], "start": sight.start}
    mixed = mixed_values(q, k, v, at, **factors, added=added)  # (B, N, T, H)
    return at.linear("output", join_heads(mixed), x.shape[-1], bias=fields["bias"])  # (B, T, N·H) x (N·H, D)


def queries_and_keys(fields: Fields, x: Array, at: Scope, sight: Sight) -> tuple[Array, Array]:
    """Convolved, plus means of what was projected, with lengths of √H (arXiv 2510.04476).

    x: (B, T, D) -> (B, N, T, H), (B, K, T, H). A key head has a learned factor.
    """
    heads, kv_heads, head_dim, bias = (fields[name] for name in ("heads", "kv_heads", "head_dim", "bias"))
    batch, tokens, _ = x.shape
    q = at.linear("q", x, heads * head_dim, bias=bias)  # (B, T, D) x (D, N·H)
    k = at.linear("k", x, kv_heads * head_dim, bias=bias)  # (B, T, D) x (D, K·H)
    mixed = twice_convolved(fields, np.concatenate([q, k], axis=-1), at, sight)  # (B, T, N·H + K·H)
    asking = q.reshape(batch, tokens, kv_heads, heads // kv_heads, head_dim)  # (B, T, K, N/K, H)
    means = (asking + k.reshape(batch, tokens, kv_heads, 1, head_dim)) * FLOAT(0.5)  # (B, T, K, N/K, H)
    mixed_q, mixed_k = np.split(mixed, [heads * head_dim], axis=-1)  # (B, T, N·H), (B, T, K·H)
    q = split_heads(mixed_q + means.reshape(q.shape), heads)  # (B, N, T, H)
    k = split_heads(mixed_k + means.mean(axis=3).reshape(k.shape), kv_heads)  # (B, K, T, H)
    return of_length(q), of_length(k) * at.gain("key_scale", kv_heads)[:, None, None]  # (B, K, T, H) * (K, 1, 1)


def of_length(x: Array) -> Array:
    """Vectors of √H. (..., H) -> (..., H)."""
    lengths = np.sqrt((x * x).sum(axis=-1, keepdims=True))  # (..., 1)
    return x * (FLOAT(math.sqrt(x.shape[-1])) / np.maximum(lengths, SMALLEST))


def twice_convolved(fields: Fields, x: Array, at: Scope, sight: Sight) -> Array:
    """Each channel over its latest tokens, then each head over all of its own. (B, T, C) -> (B, T, C).

    What came before the first token is 0, and the first convolution made its bias of it.
    """
    batch, tokens, channels = x.shape
    back, further, head_dim = fields["taps"] - 1, fields["group_taps"] - 1, fields["head_dim"]
    bias = at.parameter("conv_bias", channels)  # (C)
    before = np.concatenate([np.zeros((back, channels), FLOAT), np.tile(bias, (further, 1))])  # (back + further, C)
    held = held_states({"conv_state": np.tile(before, (batch, 1, 1))}, at, sight)["conv_state"]
    inputs = np.concatenate([held[:, :back], x], axis=1)  # (B, back + T, C)
    each = latest(inputs, tokens).transpose(0, 3, 1, 2)  # (B, C, T, back + 1)
    made = at.each("conv", each, 1)[..., 0].swapaxes(1, 2) + bias  # (B, C, T, back + 1) x (C, back + 1, 1)
    between = np.concatenate([held[:, back:], made], axis=1)  # (B, further + T, C)
    kept = kept_of(sight, tokens)
    stays = inputs[:, kept : kept + back], between[:, kept : kept + further]
    if back + further:
        hold_states({"conv_state": np.concatenate(stays, axis=1)}, at, sight)  # (B, back + further, C)
    of_heads = latest(between, tokens).reshape(batch, tokens, further + 1, channels // head_dim, head_dim)
    of_head = of_heads.transpose(0, 3, 1, 2, 4).reshape(batch, channels // head_dim, tokens, (further + 1) * head_dim)
    y = join_heads(at.each("group_conv", of_head, head_dim))  # (B, N + K, T, taps·H) x (N + K, taps·H, H)
    return y + at.parameter("group_conv_bias", channels)  # (B, T, C) + (C)


def latest(x: Array, tokens: int) -> Array:
    """Each of the last T places behind the m before it. (B, m + T, C) -> (B, T, m + 1, C)."""
    more = x.shape[1] - tokens
    return x[:, np.arange(tokens)[:, None] + np.arange(more + 1)]


def delayed_values(fields: Fields, x: Array, at: Scope, sight: Sight) -> Array:
    """Of the K·H numbers the first half is of the token itself, the second of the one before it.

    Before the first token the input is 0. x: (B, T, D) -> (B, K, T, H).
    """
    half = fields["kv_heads"] * fields["head_dim"] // 2
    current = at.linear("v_current", x, half, bias=fields["bias"])  # (B, T, D) x (D, K·H/2)
    bias = at.parameter("v_delayed_bias", half) if fields["bias"] else np.zeros(half, FLOAT)  # (K·H/2)
    made = at.linear("v_delayed", x, half, bias=False) + bias  # (B, T, D) x (D, K·H/2)
    held = held_states({"delayed_state": np.tile(bias, (x.shape[0], 1))}, at, sight)["delayed_state"]  # (B, K·H/2)
    seen = np.concatenate([held[:, None], made], axis=1)  # (B, 1 + T, K·H/2)
    hold_states({"delayed_state": seen[:, kept_of(sight, x.shape[1])].copy()}, at, sight)  # (B, K·H/2)
    return split_heads(np.concatenate([current, seen[:, :-1]], axis=-1), fields["kv_heads"])  # (B, K, T, H)
