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


def back_to(position: int, *, window: int | None, chunk: int | None) -> int | None:
    """How many keys a query at `position` may see at most, its own included; None for all.

    Of a chunk those since the last multiple of it (Llama-4's `attention_chunk_size`), which counts from the text's
    first token on; of a window always as many.
    """
    return window if chunk is None else position % chunk + 1


def seen_from(position: int, keys: int, *, causal: bool, window: int | None = None, uneven: bool = False) -> slice:
    """Which of `keys` positions a query at `position` sees.

    causal: itself and earlier ones, of which a window holds the latest, its own included (arXiv 2310.06825, section 2).
    Otherwise all, of which a window holds its own and window // 2 to either side (ModernBERT, arXiv 2412.13663);
    uneven, an even one holds one less of those before it, and so as many keys as it says (T5Gemma-2).
    """
    if window is None:
        return slice(0, position + 1 if causal else keys)
    if causal:
        return slice(max(position - window + 1, 0), position + 1)
    back = (window - 1) // 2 if uneven else window // 2
    return slice(max(position - back, 0), min(position + window // 2 + 1, keys))


def visible(
    queries: int, keys: int, *, causal: bool = False, window: int | None = None, chunk: int | None = None
) -> Array:
    """Who sees whom: (queries, keys) of True and False. The queries are the last of the keys' positions.

    causal: nobody sees a later position (arXiv 1706.03762, section 3.2.3). window: of the others only the latest, the
    own one included (arXiv 2310.06825, section 2); not causal, the own one and window // 2 to either side (arXiv
    2412.13663). chunk: of the others only those of the own chunk of so many tokens (Llama-4). Raises ValueError for
    another window or chunk, and for more causal, windowed or chunked queries than keys.
    """
    if (causal or window is not None or chunk is not None) and queries > keys:
        raise ValueError(f"{queries} queries cannot be the last of {keys} positions")
    for name, count in (("window", window), ("chunk", chunk)):
        if count is not None and (not isinstance(count, int | np.integer) or count < 1):
            raise ValueError(f"a {name} is a whole number of at least 1: {count}")
    query = np.arange(keys - queries, keys)[:, None]  # (T, 1)
    key = np.arange(keys)[None, :]  # (1, S)
    seen = np.full((queries, keys), True)  # (T, S)
    if causal:
        seen &= key <= query
    if window is not None:
        seen &= key > query - window if causal else np.abs(key - query) <= window // 2
    if chunk is not None:
        seen &= key // chunk == query // chunk
    return seen


def attention_weights(
    scores: Array,
    *,
    scale: float,
    softcap: float | None = None,
    added: Array | None = None,
    seen: Array | None = None,
    sinks: Array | None = None,
) -> Array:
    """Scores q·k to weights that sum to 1 over the keys: scaled, capped, added to, masked, softmax. (..., T, S) all.

    sinks: one more score for each query, of no key, whose weight stands behind the others: (..., T, 1), and the result
    is (..., T, S + 1) (gpt-oss; StreamingLLM, arXiv 2309.17453).
    """
    scores = soft_cap(floats(scores) * scale, softcap)  # (..., T, S)
    if added is not None:
        scores = scores + added  # numbers of positions: T5's, ALiBi's
    if seen is not None:
        scores = np.where(seen, scores, -np.inf)  # weight 0 where a query may not look
    if sinks is not None:
        scores = np.concatenate([scores, np.broadcast_to(sinks, (*scores.shape[:-1], 1))], axis=-1)  # (..., T, S + 1)
    return softmax(scores)


def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    causal: bool = False,
    window: int | None = None,
    chunk: int | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> tuple[Array, Array]:
    """softmax(q kᵀ / √H) v, and the weights themselves (arXiv 1706.03762, equation 1).

    q: (..., T, H); k: (..., S, H); v: (..., S, any); the queries are the last T of the S positions. causal: a query
    sees no later key. window, chunk: and of the others only some, as `visible` has it. scale: None for 1 / √H. Results:
    (..., T, any) and (..., T, S). Grouped-query heads broadcast: q (K, G, T, H) with k and v (K, 1, S, H). Raises
    ValueError for shapes that do not go together, more queries than keys, and a window, chunk or cap that cannot be.
    """
    q, k, v = floats(q), floats(k), floats(v)
    _check_shapes(q.shape, k.shape, v.shape)
    scores = q @ k.swapaxes(-1, -2)  # (..., T, H) x (..., H, S) -> (..., T, S)
    seen = visible(q.shape[-2], k.shape[-2], causal=causal, window=window, chunk=chunk)  # (T, S)
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
