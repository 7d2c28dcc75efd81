"""What attentions of whole texts share: heads of one size, and queries that each meet a list of keys."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from costcalc.reference.arrays import Array, Fields
from costcalc.reference.grouped_query import join_heads, split_heads
from costcalc.reference.scaled_dot_product import attention_weights
from costcalc.reference.tape import Scope

Sees = Callable[[int], Sequence[int]]
"""A token -> the places of the keys that it meets, none twice."""
Adds = Callable[[int, Array], Array]
"""A token and the places of its keys, (s) -> what is added to its scores, (N, s)."""


def inner_width(fields: Fields, d_model: int) -> int:
    """N·H."""
    heads: int = fields["heads"]
    return heads * (fields["head_dim"] or d_model // heads)


def projected(fields: Fields, x: Array, at: Scope, name: str, *, d_model: int) -> Array:
    """(B, T, D) -> (B, N, T, H)."""
    made = at.linear(name, x, inner_width(fields, d_model), bias=fields["bias"])  # (B, T, D) x (D, N·H)
    return split_heads(made, fields["heads"])


def scale_of(fields: Fields, head_dim: int) -> float:
    """1 / √H, unless another is given."""
    return 1 / math.sqrt(head_dim) if fields["scale"] is None else fields["scale"]


def meet(
    q: Array,
    keys: Array,
    values: Array,
    at: Scope,
    *,
    tokens: Sequence[int],
    sees: Sees,
    scale: float,
    adds: Adds | None,
) -> Array:
    """The weighted mean of the values that each of some tokens sees. q: (B, N, T, H), of those tokens.

    keys: (B, N, S, H); values: (B, N, S, H); result: (B, N, T, H).
    """
    mixed = np.empty(q.shape, values.dtype)  # (B, N, T, H)
    for row, token in enumerate(tokens):
        places = np.asarray(sees(token))  # (s)
        one = q[:, :, row : row + 1]  # (B, N, 1, H)
        scores = at.product("scores", one, keys[:, :, places].swapaxes(-1, -2))  # (B, N, 1, s)
        more = None if adds is None else adds(token, places)[:, None]  # (N, 1, s)
        weights = attention_weights(scores, scale=scale, added=more)  # (B, N, 1, s)
        at.tape.watch_rows(weights)
        mixed[:, :, row : row + 1] = at.product("values", weights, values[:, :, places])  # (B, N, 1, s) x (B, N, s, H)
    return mixed


def put_out(fields: Fields, mixed: Array, at: Scope, *, d_model: int) -> Array:
    """(B, N, T, H) -> (B, T, D)."""
    return at.linear("output", join_heads(mixed), d_model, bias=fields["out_bias"])  # (B, T, N·H) x (N·H, D)


def check_both_ways(at: Scope, causal: bool) -> None:
    """ValueError in a decoder."""
    if causal:
        raise ValueError(f"{at.path} reads all of the text at once: it is for an encoder")


def around(token: int, tokens: int, window: int, *, first: int = 0) -> list[int]:
    """Places up to window // 2 from a token, from place `first` on."""
    return list(range(max(token - window // 2, first), min(token + window // 2 + 1, tokens)))
