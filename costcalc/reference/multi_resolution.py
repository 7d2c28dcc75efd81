"""Attention at two resolutions (MRA, arXiv 2207.10284, section 4): chosen blocks in full, all others as means."""

from __future__ import annotations

from typing import Any

import numpy as np

from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.kinds import of_kind
from costcalc.reference.met import check_both_ways, projected, put_out, scale_of
from costcalc.reference.positions import TURNED
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope

SMALLEST = FLOAT(1e-6)
"""Added to what weights are divided by: of a row none may have been chosen."""


def multi_resolution(fields: Fields, x: Array, at: Scope, *, positions: Fields, sight: Sight, **others: Any) -> Array:
    """The best pairs of blocks by their means, each head's own. x: (B, T, D) -> (B, T, D)."""
    del others  # nothing is added to scores of means
    check_both_ways(at, sight.causal)
    tokens, block = x.shape[1], fields["block"]
    turn, here = of_kind(TURNED, positions["kind"], "positions"), np.arange(tokens)
    q, k, v = (projected(fields, x, at, name, d_model=x.shape[-1]) for name in "qkv")  # (B, N, T, H) each
    q, k = turn(positions, q, here), turn(positions, k, here)
    if not tokens:
        return put_out(fields, v, at, d_model=x.shape[-1])
    count = -(-tokens // block)
    filled = ((0, 0), (0, 0), (0, count * block - tokens), (0, 0))
    q, k, v = (np.pad(y, filled).reshape(*y.shape[:2], count, block, y.shape[-1]) for y in (q, k, v))
    sizes = np.minimum(tokens - np.arange(count) * block, block).astype(FLOAT)  # (n)
    of_q, of_k, of_v = (y.sum(axis=3) / sizes[:, None] for y in (q, k, v))  # (B, N, n, H) each
    scale = FLOAT(scale_of(fields, q.shape[-1]))
    coarse = at.product("scores", of_q, of_k.swapaxes(-1, -2)) * scale  # (B, N, n, n)
    mixed = np.stack([_of_text(fields, q[i], k[i], v[i], of_v[i], coarse[i], sizes, scale, at) for i in range(len(x))])
    return put_out(fields, mixed[:, :, :tokens], at, d_model=x.shape[-1])


def _of_text(
    fields: Fields,
    q: Array,
    k: Array,
    v: Array,
    of_v: Array,
    coarse: Array,
    sizes: Array,
    scale: FLOAT,
    at: Scope,
) -> Array:
    """One text. q, k, v: (N, n, b, H); of_v: (N, n, H); coarse: (N, n, n); sizes: (n). Result: (N, n·b, H)."""
    heads, count, block, head_dim = q.shape
    most = min(fields["blocks"], count * count)
    made = np.zeros((heads, count, block, head_dim), FLOAT)
    for head in range(heads):
        best = np.argsort(-coarse[head].ravel(), kind="stable")[:most]
        rows, columns = np.divmod(best, count)  # (K) each
        scores = at.product("scores", q[head, rows], k[head, columns].swapaxes(-1, -2)) * scale  # (K, b, b)
        there = np.arange(block) < sizes[columns][:, None, None]  # (K, 1, b)
        top = max(float(scores.max()), float(coarse[head].max()))
        weights = np.where(there, np.exp(scores - FLOAT(top)), 0).astype(FLOAT)  # (K, b, b)
        total, values = np.zeros((count, block, 1), FLOAT), at.product("values", weights, v[head, columns])
        np.add.at(total, rows, weights.sum(axis=-1, keepdims=True))
        np.add.at(made[head], rows, values)
        if fields["coarse"]:
            few = np.exp(coarse[head] - FLOAT(top)) * sizes  # (n, n)
            few[rows, columns] = 0
            made[head] += at.product("values", few, of_v[head])[:, None]  # (n, n) x (n, H)
            total += few.sum(axis=-1)[:, None, None]
        made[head] /= total + SMALLEST
    return made.reshape(heads, count * block, head_dim)
