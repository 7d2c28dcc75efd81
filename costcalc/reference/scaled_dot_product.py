"""Scaled dot-product attention (arXiv 1706.03762, section 3.2.1): softmax of scores, weighted mean of values."""

from __future__ import annotations

import math

import numpy as np

from costcalc.reference.arrays import Array, floats


def softmax(x: Array) -> Array:
    """e^x over its sum along the last axis (arXiv 1706.03762, equation 1).

    Subtracting the maximum changes nothing but keeps e^x from overflowing.
    """
    x = floats(x)
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))  # (..., S)
    weights: Array = exponentials / exponentials.sum(axis=-1, keepdims=True)  # (..., S)
    return weights


def soft_cap(x: Array, cap: float | None) -> Array:
    """cap · tanh(x / cap): almost x while x is small, never beyond ±cap (Gemma-2, arXiv 2408.00118); None: x.

    Raises ValueError for a cap that is no number above 0.
    """
    if cap is None:
        return floats(x)
    if not 0 < cap < math.inf:
        raise ValueError(f"a cap is a number above 0, not {cap}")
    return cap * np.tanh(floats(x) / cap)


def seen_from(position: int, keys: int, *, causal: bool, window: int | None = None) -> slice:
    """Which of `keys` positions a query at `position` sees.

    causal: itself and earlier ones, of which a window holds the latest, its own included (arXiv 2310.06825, section 2).
    Otherwise all, of which a window holds its own and window // 2 to either side (ModernBERT, arXiv 2412.13663).
    """
    if window is None:
        return slice(0, position + 1 if causal else keys)
    if causal:
        return slice(max(position - window + 1, 0), position + 1)
    return slice(max(position - window // 2, 0), min(position + window // 2 + 1, keys))


def visible(queries: int, keys: int, *, causal: bool = False, window: int | None = None) -> Array:
    """Who sees whom: (queries, keys) of True and False. The queries are the last of the keys' positions.

    causal: nobody sees a later position (arXiv 1706.03762, section 3.2.3). window: of the others only the latest, the
    own one included (arXiv 2310.06825, section 2); not causal, the own one and window // 2 to either side (arXiv
    2412.13663). Raises ValueError for another window, and for more causal or windowed queries than keys.
    """
    if (causal or window is not None) and queries > keys:
        raise ValueError(f"{queries} queries cannot be the last of {keys} positions")
    if window is not None and (not isinstance(window, int | np.integer) or window < 1):
        raise ValueError(f"a window is a whole number of at least 1: {window}")
    query = np.arange(keys - queries, keys)[:, None]  # (T, 1)
    key = np.arange(keys)[None, :]  # (1, S)
    seen = np.full((queries, keys), True)  # (T, S)
    if causal:
        seen &= key <= query
    if window is not None:
        seen &= key > query - window if causal else np.abs(key - query) <= window // 2
    return seen


def attention_weights(
    scores: Array,
    *,
    scale: float,
    softcap: float | None = None,
    added: Array | None = None,
    seen: Array | None = None,
) -> Array:
    """Scores q·k to weights that sum to 1 over the keys: scaled, capped, added to, masked, softmax. (..., T, S) all."""
    scores = soft_cap(floats(scores) * scale, softcap)  # (..., T, S)
    if added is not None:
        scores = scores + added  # numbers of positions: T5's, ALiBi's
    if seen is not None:
        scores = np.where(seen, scores, -np.inf)  # weight 0 where a query may not look
    return softmax(scores)


def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> tuple[Array, Array]:
    """softmax(q kᵀ / √H) v, and the weights themselves (arXiv 1706.03762, equation 1).

    q: (..., T, H); k: (..., S, H); v: (..., S, any); the queries are the last T of the S positions. causal: a query
    sees no later key. window: and of the others only the latest, as `visible` has it. scale: None for 1 / √H. Results:
    (..., T, any) and (..., T, S). Grouped-query heads broadcast: q (K, G, T, H) with k and v (K, 1, S, H). Raises
    ValueError for shapes that do not go together, for more queries than keys, and for a window or a cap that cannot be.
    """
    q, k, v = floats(q), floats(k), floats(v)
    _check_shapes(q.shape, k.shape, v.shape)
    scores = q @ k.swapaxes(-1, -2)  # (..., T, H) x (..., H, S) -> (..., T, S)
    seen = visible(q.shape[-2], k.shape[-2], causal=causal, window=window)  # (T, S)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    weights = attention_weights(scores, scale=scale, softcap=softcap, seen=seen)  # (..., T, S)
    return weights @ v, weights  # (..., T, S) x (..., S, any)


def _check_shapes(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]) -> None:
    """ValueError where queries, keys and values do not go together."""
    fits = min(len(q), len(k), len(v)) >= 2 and q[-1] == k[-1] and k[-2] == v[-2] > 0
    try:
        np.broadcast_shapes(q[:-2], k[:-2], v[:-2])
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"(..., T, H), (..., S, H) and (..., S, any) are needed, not q {q}, k {k}, v {v}")
