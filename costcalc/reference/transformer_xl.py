"""Attention with sinusoids of distances (Transformer-XL, arXiv 1901.02860, section 3.3 and appendix B), as in XLNet."""

from __future__ import annotations

import math

import numpy as np

from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.grouped_query import join_heads, split_heads
from costcalc.reference.on_scores import OfDistances
from costcalc.reference.scaled_dot_product import softmax
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


def sinusoids(distances: Array, width: int) -> Array:
    """Sines of all frequencies, then their cosines (`XLNetModel`). (R) -> (R, D)."""
    frequencies = 10_000.0 ** (-np.arange(0, width, 2) / width)  # (D/2)
    angles = np.asarray(distances)[:, None] * frequencies  # (R, D/2)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1).astype(FLOAT)


def transformer_xl(
    fields: Fields,
    x: Array,
    at: Scope,
    *,
    positions: Fields,
    sight: Sight,
    added: OfDistances | None = None,
    name: str | None = None,
) -> Array:
    """Self-attention of T tokens that all see each other (equation 5). x: (B, T, D) -> (B, T, D)."""
    del positions, added, name
    if sight.causal:
        raise ValueError("attention with sinusoids of distances is for an encoder")
    (batch, tokens, width), heads = x.shape, fields["heads"]
    q, k, v = (split_heads(at.linear(letter, x, width, bias=False), heads) for letter in "qkv")  # (B, N, T, H) each
    rows = sinusoids(np.arange(tokens, -tokens, -1), width)  # (2·T, D): distances T, T - 1, ... 1 - T
    each = np.ascontiguousarray(np.broadcast_to(rows, (batch, *rows.shape)))  # (B, 2·T, D)
    keys = split_heads(at.linear("distance_k", each, width, bias=False), heads)  # (B, N, 2·T, H)
    content = q + at.parameter("content_shift", heads, width // heads)[:, None]  # (B, N, T, H) + (N, 1, H)
    distance = q + at.parameter("distance_shift", heads, width // heads)[:, None]  # (B, N, T, H) + (N, 1, H)
    if fields["segments"]:
        at.parameter("segment_shift", heads, width // heads)  # for texts that come in parts
        at.parameter("segments", fields["segments"], heads, width // heads)
    scores = at.product("scores", content, k.swapaxes(-1, -2))  # (B, N, T, T)
    of_rows = at.under("to_position").product("scores", distance, keys.swapaxes(-1, -2))  # (B, N, T, 2·T)
    here = np.arange(tokens)  # (T)
    asked = tokens - (here[:, None] - here)  # (T, T): the row of distance i - j
    scores = scores + np.take_along_axis(of_rows, np.broadcast_to(asked, scores.shape), axis=-1)
    weights = softmax(scores * FLOAT(1 / math.sqrt(width // heads)))  # (B, N, T, T)
    at.tape.watch_rows(weights)
    mixed = at.product("values", weights, v)  # (B, N, T, T) x (B, N, T, H)
    return at.linear("output", join_heads(mixed), width, bias=False)  # (B, T, D) x (D, D)
