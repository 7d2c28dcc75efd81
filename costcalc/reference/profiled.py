"""Attention whose scores know distances by profiles that each token mixes (Inkling: `InklingAttention`)."""

from __future__ import annotations

import math

import numpy as np

from costcalc.reference.activations import sigmoid
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.convolution import convolved
from costcalc.reference.grouped_query import join_heads, split_heads
from costcalc.reference.norms import norm
from costcalc.reference.on_scores import OfDistances
from costcalc.reference.recurrence import held_states, hold_states, kept_of
from costcalc.reference.scaled_dot_product import attention_weights, seen_from
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope

LEAST = 1e-6
"""What a length is taken for that is smaller."""


def profiled_attention(
    fields: Fields,
    x: Array,
    at: Scope,
    *,
    positions: Fields,
    sight: Sight,
    added: OfDistances | None = None,
    name: str | None = None,
    made_of: tuple[Array, Array] | None = None,
) -> Array:
    """Self-attention of T new tokens over themselves and what the request holds. x: (B, T, D) -> (B, T, D).

    made_of: what keys and what values are made of, where that is not what queries are.
    """
    del positions, added, name  # profiles tell distances; no other layer looks at these keys
    heads, width = fields["heads"], fields["head_dim"]
    here = sight.start + np.arange(x.shape[1])  # (T)
    of_keys, of_values = (x, x) if made_of is None else made_of
    q = split_heads(at.linear("q", x, heads * width, bias=False), heads)  # (B, N, T, H)
    k, v = (short(fields, some, at, name, sight) for some, name in ((of_keys, "k"), (of_values, "v")))
    if fields["head_norm"]:
        q, k = norm(fields["head_norm"], q, at, "q_norm"), norm(fields["head_norm"], k, at, "k_norm")
    if fields["limit"]:
        gain = at.gain("q_scale", heads * width).reshape(heads, 1, width)  # (N, 1, H)
        q, k = limited(q * gain, fields["limit"]), limited(k, fields["limit"])
    if fields["v_norm"]:
        v = norm(fields["v_norm"], v, at, "v_norm")  # (B, K, T, H)
    growth = grown(fields, here)  # (T, 1)
    if sight.request is not None:
        k = sight.request.extended(at.named("k_cache"), k, window=fields["window"])  # (B, K, S, H)
        v = sight.request.extended(at.named("v_cache"), v, window=fields["window"])  # (B, K, S, H)
    bias = profiles(fields, x, at, growth)  # (B, N, T, reach)
    sinks = at.linear("sinks", x, heads, bias=False) if fields["sinks"] else None  # (B, T, N)
    mixed = join_heads(_mixed(fields, q * growth, k, v, bias, sinks, at))  # (B, T, N·H)
    if fields["output_gate"]:
        mixed = mixed * sigmoid(at.linear("gate", x, heads * width, bias=False))  # (B, T, N·H) twice
    return at.linear("output", mixed, x.shape[-1], bias=False)  # (B, T, N·H) x (N·H, D)


def limited(x: Array, limit: float) -> Array:
    """Vectors no longer than `limit`. (..., H) -> (..., H)."""
    lengths = np.sqrt((x * x).sum(axis=-1, keepdims=True))  # (..., 1)
    return x * np.minimum(FLOAT(limit) / (lengths + FLOAT(LEAST)), FLOAT(1))


def grown(fields: Fields, here: Array) -> Array:
    """1, and from `log_floor` tokens on more: 1 + alpha ln(tokens / floor). (T) -> (T, 1)."""
    if fields["log_floor"] is None:
        return np.ones((len(here), 1), FLOAT)
    growth = 1 + fields["log_alpha"] * np.log(np.maximum((here + 1) / fields["log_floor"], 1))  # (T)
    result: Array = growth.astype(FLOAT)[:, None]
    return result


def short(fields: Fields, x: Array, at: Scope, name: str, sight: Sight) -> Array:
    """Keys or values: a product, and with itself a convolution of it over the latest tokens. (B, T, D) -> (B, K, T, H).

    Taps may be those of a channel and, added, those that a token makes for a head, the latest token's first.
    """
    kv_heads, taps = fields["kv_heads"], fields["taps"]
    y = at.linear(name, x, kv_heads * fields["head_dim"], bias=False)  # (B, T, K·H)
    there = at.under(f"{name}_conv")
    if fields["dynamic_taps"]:
        mixed, added = _by_token(fields, x, y, there, sight), 2 * taps + 1
    else:
        mixed, added = convolved(y, there, taps=taps, bias=False, sight=sight), taps + 1
    y = y + mixed
    return split_heads(y / FLOAT(math.sqrt(added)) if fields["means"] else y, kv_heads)


def _by_token(fields: Fields, x: Array, y: Array, at: Scope, sight: Sight) -> Array:
    """The convolution whose taps each token makes. x: (B, T, D); y: (B, T, K·H) -> (B, T, K·H)."""
    batch, tokens, channels = y.shape
    kv_heads, taps = fields["kv_heads"], fields["taps"]
    start = {"conv_state": np.zeros((batch, taps, channels), FLOAT)}
    seen = np.concatenate([held_states(start, at, sight)["conv_state"], y], axis=1)  # (B, taps + T, C)
    kept = kept_of(sight, tokens)
    hold_states({"conv_state": seen[:, kept : kept + taps].copy()}, at, sight)  # (B, taps, C)
    back = seen[:, taps + np.arange(tokens)[:, None] - np.arange(taps)]  # (B, T, taps, C), the token itself first
    static = at.parameter("static", taps, channels)  # (taps, C)
    own = at.linear("dynamic", x, kv_heads * taps, bias=False).reshape(batch, tokens, kv_heads, taps)
    each = np.repeat(own, channels // kv_heads, axis=2).swapaxes(-1, -2)  # (B, T, taps, C)
    total: Array = (back * (static + each)).sum(axis=2)  # (B, T, C)
    return total


def profiles(fields: Fields, x: Array, at: Scope, growth: Array) -> Array:
    """What is added to a score at each distance back, from 0. x: (B, T, D) -> (B, N, T, reach)."""
    heads, count = fields["heads"], fields["profiles"]
    mixing = split_heads(at.linear("profiles", x, heads * count, bias=False), heads)  # (B, N, T, profiles)
    if fields["profile_limit"]:
        gain = at.gain("profiles_scale", heads * count).reshape(heads, 1, count)  # (N, 1, profiles)
        mixing = limited(mixing * gain, fields["profile_limit"])
    return at.linear("bank", mixing * growth, fields["reach"], bias=False)  # (B, N, T, p) x (p, reach)


def _mixed(fields: Fields, q: Array, keys: Array, values: Array, bias: Array, sinks: Array | None, at: Scope) -> Array:
    """The weighted mean of the values for each query. q: (B, N, T, H); keys, values: (B, K, S, H) -> (B, N, T, H)."""
    batch, heads, tokens, width = q.shape
    kv_heads, seen, reach = keys.shape[1], keys.shape[2], bias.shape[-1]
    scale = fields["scale"] or 1 / math.sqrt(width)
    groups = q.reshape(batch, kv_heads, heads // kv_heads, tokens, width)  # (B, K, G, T, H)
    mixed = np.empty(groups.shape, values.dtype)  # (B, K, G, T, H)
    for token in range(tokens):
        place = seen - tokens + token
        sees = seen_from(place, seen, causal=True, window=fields["window"])
        back = place - np.arange(seen)[sees]  # (s)
        more = np.where(back < reach, bias[:, :, token][..., np.minimum(back, reach - 1)], FLOAT(0))  # (B, N, s)
        of_sink = None if sinks is None else sinks[:, token].reshape(*groups.shape[:3], 1)  # (B, K, G, 1)
        scores = at.product("scores", groups[..., token, :], keys[:, :, sees].swapaxes(-1, -2))  # (B, K, G, s)
        weights = attention_weights(scores, scale=scale, added=more.reshape(scores.shape), sinks=of_sink)
        at.tape.watch_rows(weights)
        weights = weights if sinks is None else weights[..., :-1]  # what went to the sink is of no value
        mixed[..., token, :] = at.product("values", weights, values[:, :, sees])  # (B, K, G, s) x (B, K, s, H)
    return mixed.reshape(q.shape)
