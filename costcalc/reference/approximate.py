"""Attentions of whole texts whose weights are no softmax of all pairs: landmarks, and hashes that collide."""

from __future__ import annotations

import numpy as np

from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.kinds import of_kind
from costcalc.reference.met import check_both_ways, projected, put_out, scale_of
from costcalc.reference.on_scores import OfDistances
from costcalc.reference.positions import TURNED
from costcalc.reference.scaled_dot_product import softmax
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


def landmarks(
    fields: Fields,
    x: Array,
    at: Scope,
    *,
    positions: Fields,
    sight: Sight,
    added: OfDistances | None = None,
    name: str | None = None,
) -> Array:
    """softmax(Q K̃ᵀ) (softmax(Q̃ K̃ᵀ))⁺ softmax(Q̃ Kᵀ) V (arXiv 2102.03902, equation 8), or all pairs without landmarks.

    Q̃ and K̃ are means of segments. x: (B, T, D) -> (B, T, D).
    """
    del name
    q, k, v = _made(fields, x, at, positions, sight)  # (B, N, T, H) each
    scale, count = FLOAT(scale_of(fields, q.shape[-1])), fields["landmarks"]
    if not x.shape[1]:
        mixed = v
    elif count is None:
        weights = softmax(at.product("scores", q, k.swapaxes(-1, -2)) * scale + _biases(added, x, q.dtype))
        at.tape.watch_rows(weights)
        mixed = at.product("values", weights, v)  # (B, N, T, T) x (B, N, T, H)
    else:
        few_q, few_k = _means(q, count), _means(k, count)  # (B, N, m, H) each
        first = softmax(at.product("scores", q, few_k.swapaxes(-1, -2)) * scale)  # (B, N, T, m)
        middle = softmax(at.product("scores", few_q, few_k.swapaxes(-1, -2)) * scale)  # (B, N, m, m)
        last = softmax(at.product("scores", few_q, k.swapaxes(-1, -2)) * scale)  # (B, N, m, T)
        at.tape.watch_rows(last)
        weights = at.product("by_inverse", first, _inverse(middle, at, steps=fields["steps"]))  # (B, N, T, m)
        mixed = at.product("values", weights, at.product("values", last, v))  # (B, N, T, m) x (B, N, m, H)
    return put_out(fields, mixed + _convolved(fields, v, at), at, d_model=x.shape[-1])


def collisions(
    fields: Fields,
    x: Array,
    at: Scope,
    *,
    positions: Fields,
    sight: Sight,
    added: OfDistances | None = None,
    name: str | None = None,
) -> Array:
    """(1 - angle(q, k) / π)^bits weighs the values, and what comes out has length 1 (arXiv 2111.09714, section 3).

    x: (B, T, D) -> (B, T, D).
    """
    del name, added  # there is no softmax that anything could be added before
    q, k, v = _made(fields, x, at, positions, sight)  # (B, N, T, H) each
    if x.shape[1]:
        likeness = np.clip(at.product("scores", _unit(q), _unit(k).swapaxes(-1, -2)), -1, 1)  # (B, N, T, T)
        chances = (1 - np.arccos(likeness) / FLOAT(np.pi)) ** fields["bits"]  # (B, N, T, T)
        mixed = _unit(at.product("values", chances.astype(FLOAT), v))  # (B, N, T, T) x (B, N, T, H)
    else:
        mixed = v
    return put_out(fields, mixed + _convolved(fields, v, at), at, d_model=x.shape[-1])


def _made(fields: Fields, x: Array, at: Scope, positions: Fields, sight: Sight) -> tuple[Array, Array, Array]:
    check_both_ways(at, sight.causal)
    turn, here = of_kind(TURNED, positions["kind"], "positions"), np.arange(x.shape[1])
    q, k, v = (projected(fields, x, at, name, d_model=x.shape[-1]) for name in "qkv")
    return turn(positions, q, here), turn(positions, k, here), v


def _biases(added: OfDistances | None, x: Array, dtype: np.dtype) -> Array:
    """What positions add to all pairs: (N, T, T), or nothing."""
    tokens = np.arange(x.shape[1])
    nothing: Array = np.zeros((1, 1, 1), dtype)
    return nothing if added is None else np.stack([added(tokens - token) for token in tokens], axis=1).astype(dtype)


def _means(x: Array, count: int) -> Array:
    """Means of `count` segments of the text, of one that has no token 0. (B, N, T, H) -> (B, N, m, H)."""
    segment = np.arange(x.shape[2]) * count // x.shape[2]  # (T)
    means = np.zeros((*x.shape[:2], count, x.shape[3]), x.dtype)
    for number in np.unique(segment):
        means[:, :, number] = x[:, :, segment == number].mean(axis=2)
    return means


def _inverse(matrix: Array, at: Scope, *, steps: int) -> Array:
    """Z ← Z (13 I - A Z (15 I - A Z (7 I - A Z))) / 4, from Aᵀ / (|A|₁ |A|∞) (equation 11). (..., m, m) -> (..., m, m).

    Rows of softmax sum to 1, so that |A|∞ is 1.
    """
    unit = np.eye(matrix.shape[-1], dtype=FLOAT)  # (m, m)
    found = matrix.swapaxes(-1, -2) / matrix.sum(axis=-2).max()  # (..., m, m)
    for _ in range(steps):
        both = at.product("inverse", matrix, found)
        inner = at.product("inverse", both, 7 * unit - both)
        outer = at.product("inverse", both, 15 * unit - inner)
        found = at.product("inverse", FLOAT(0.25) * found, 13 * unit - outer)
    return found


def _convolved(fields: Fields, v: Array, at: Scope) -> Array:
    """Each head's values over the tokens around each, 0 beyond the text. (B, N, T, H) -> (B, N, T, H)."""
    taps = fields["taps"]
    if taps is None:
        return np.zeros_like(v)
    batch, heads, tokens, head_dim = v.shape
    padded = np.pad(v, ((0, 0), (0, 0), (taps // 2, taps // 2), (0, 0)))  # (B, N, T + taps - 1, H)
    seen = padded[:, :, np.arange(tokens)[:, None] + np.arange(taps)]  # (B, N, T, taps, H)
    rows = seen.swapaxes(-1, -2).reshape(batch, heads, tokens * head_dim, taps)  # (B, N, T·H, taps)
    return at.each("conv", rows, 1).reshape(v.shape)  # (N, taps, 1)


def _unit(x: Array) -> Array:
    """Of length 1 along the last axis."""
    length = np.sqrt((x * x).sum(axis=-1, keepdims=True))
    return x / np.maximum(length, FLOAT(1e-12))
