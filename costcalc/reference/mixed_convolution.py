"""Mixed attention of ConvBERT (arXiv 2008.02496, section 3.3, figure 3): attention beside convolutions of spans."""

from __future__ import annotations

import math

import numpy as np

from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.grouped_query import mixed_values, split_heads
from costcalc.reference.on_scores import OfDistances
from costcalc.reference.scaled_dot_product import softmax
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


def around(x: Array, taps: int) -> Array:
    """Each token's neighbours, taps // 2 to either side, 0 beyond the text. (B, T, C) -> (B, T, taps, C)."""
    side, tokens = taps // 2, x.shape[1]
    padded = np.pad(x, ((0, 0), (side, side), (0, 0))).astype(FLOAT)  # (B, T + taps - 1, C)
    return padded[:, np.arange(tokens)[:, None] + np.arange(taps)]


def mixed_convolution(
    fields: Fields,
    x: Array,
    at: Scope,
    *,
    positions: Fields,
    sight: Sight,
    added: OfDistances | None = None,
    name: str | None = None,
) -> Array:
    """Heads that attend and heads that convolve, of T tokens that all see each other. x: (B, T, D) -> (B, T, D)."""
    del positions, name
    batch, tokens, width = x.shape
    heads, taps, half = fields["heads"], fields["taps"], width // 2
    q = at.linear("q", x, half, bias=True)  # (B, T, D) x (D, N·H)
    k, v = at.linear("k", x, half, bias=True), at.linear("v", x, half, bias=True)  # (B, T, N·H) each
    asks, keys, values = split_heads(q, heads), split_heads(k, heads), split_heads(v, heads)  # (B, N, T, H) each
    attended = mixed_values(asks, keys, values, at, causal=sight.causal, added=added)  # (B, N, T, H)
    each = around(x, taps).transpose(0, 3, 1, 2)  # (B, D, T, taps)
    mixed = at.each("span_depthwise", each, 1)[..., 0].swapaxes(1, 2)  # (B, D, T, taps) x (D, taps, 1) -> (B, T, D)
    key = at.linear("span_key", mixed, half, bias=False) + at.parameter("span_key_bias", half)  # (B, T, N·H)
    kernel = softmax(split_taps(at.linear("span_kernel", key * q, heads * taps, bias=True), heads))  # (B, T, N, taps)
    value = around(at.linear("span_value", x, half, bias=True), taps)  # (B, T, taps, N·H)
    spans = value.reshape(batch, tokens, taps, heads, half // heads).transpose(0, 1, 3, 4, 2)  # (B, T, N, H, taps)
    convolved = at.under("spans").product("values", spans, kernel[..., None])[..., 0]  # (B, T, N, H)
    both = np.concatenate([attended.transpose(0, 2, 1, 3), convolved], axis=2)  # (B, T, 2·N, H)
    return at.linear("output", both.reshape(batch, tokens, width), width, bias=True)  # (B, T, D) x (D, D)


def split_taps(x: Array, heads: int) -> Array:
    """(B, T, N·taps) -> (B, T, N, taps)."""
    return x.reshape(*x.shape[:2], heads, math.prod(x.shape[2:]) // heads)
