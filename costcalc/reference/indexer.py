"""DeepSeek sparse attention (DeepSeek-V3.2, arXiv 2512.02556, section 2.1): a lightning indexer chooses the keys that
each query meets.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.grouped_query import mixed_values, split_heads
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import norm
from costcalc.reference.positions import TURNED
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope

Chosen = list[Array]
"""For each of T queries, which of the S keys it meets: (B, s) of row numbers, rising."""


def choices(
    fields: Fields, x: Array, asked: Array | None, at: Scope, *, positions: Fields, sight: Sight
) -> Chosen | None:
    """The keys of each query, or None where it meets all that it may see.

    fields: the attention's. x: (B, T, D), its input; asked: (B, T, R_q), the latent of its queries, normed. Where there
    is no indexer, those of the nearest earlier layer that has one (arXiv 2603.12201).
    """
    if fields["indexer"] and asked is not None:
        scores = index_scores(fields, x, asked, at.under("indexer"), positions=positions, sight=sight)  # T times (B, s)
        sight.chosen[:] = [largest(some, fields["top_k"] or some.shape[-1]) for some in scores]
    if fields["top_k"] is None:
        return None
    if len(sight.chosen) != x.shape[1]:
        raise ValueError(f"{at.path} meets keys that an earlier layer chose, and none did")
    return list(sight.chosen)


def index_scores(fields: Fields, x: Array, asked: Array, at: Scope, *, positions: Fields, sight: Sight) -> list[Array]:
    """Equation 1: the sum over heads of w · relu(q · k), of each query and every key up to its own; T times (B, s).

    The weights are times 1 / √(heads · H), of which nothing depends in the choice of the largest.
    """
    how, turned = fields["indexer"], fields["rope_dim"]
    heads, head_dim = how["heads"], how["head_dim"]
    q = split_heads(at.linear("q", asked, heads * head_dim, bias=False), heads)  # (B, N, T, H)
    k = norm(how["norm"], at.linear("k", x, head_dim, bias=False), at, "k_norm")  # (B, T, H)
    w = at.linear("weights", x, heads, bias=False) * FLOAT(1 / math.sqrt(heads * head_dim))  # (B, T, N)
    here = sight.start + np.arange(x.shape[1])  # (T)
    parts = {"first": slice(0, turned), "last": slice(head_dim - turned, head_dim)}
    part = of_kind(parts, how["rotates"], "rotated part")
    turn = of_kind(TURNED, positions["kind"], "positions")
    for rows in (q, k):
        rows[..., part] = turn(positions, rows[..., part], here)
    if sight.request is not None:
        k = sight.request.extended(at.named("k_cache"), k, window=None)  # (B, S, H)
    found = []
    for token in range(x.shape[1]):
        seen = k[:, : k.shape[1] - x.shape[1] + token + 1]  # (B, s, H)
        each = at.product("scores", q[:, :, token], seen.swapaxes(-1, -2))  # (B, N, H) x (B, H, s)
        score = at.product("values", w[:, token, None], np.maximum(each, FLOAT(0)))  # (B, 1, N) x (B, N, s)
        found.append(score[:, 0])  # (B, s)
    return found


def largest(scores: Array, count: int) -> Array:
    """Where the `count` largest of each row are, in the order of their places; of equal ones the first. (B, s)."""
    best = np.argsort(-scores, axis=-1, kind="stable")[:, :count]
    return np.sort(best, axis=-1)


def mixed_of_chosen(q: Array, keys: Array, values: Array, at: Scope, *, chosen: Chosen, **factors: Any) -> Array:
    """The weighted mean of the chosen values for each query, which meets no other key.

    q: (B, N, T, H); keys: (B, K, S, H); values: (B, K, S, v); result: (B, N, T, v). factors: as of `mixed_values`.
    """
    batch, heads, tokens, _ = q.shape
    mixed = np.empty((batch, heads, tokens, values.shape[-1]), values.dtype)  # (B, N, T, v)
    for token, places in enumerate(chosen):
        rows = places[:, None, :, None]  # (B, 1, s, 1)
        met, theirs = (np.take_along_axis(all_of, rows, axis=2) for all_of in (keys, values))  # (B, K, s, H or v)
        one = slice(token, token + 1)
        mixed[:, :, one] = mixed_values(q[:, :, one], met, theirs, at, causal=False, **factors)  # (B, N, 1, v)
    return mixed
