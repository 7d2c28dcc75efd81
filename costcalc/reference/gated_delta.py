"""The gated delta rule: Gated DeltaNet (arXiv 2412.06464) and Kimi Delta Attention (2510.26692).

A head's state S (dk, dv) answers a key with a value. A token lets it decay, and corrects what it answers to the token's
key towards the token's value: S <- a S + b k (v - (a S)ᵀ k)ᵀ, with y = Sᵀ q. There are two forms that give the same:
token by token, and chunk by chunk, in which all corrections of a chunk are found at once.
"""

from __future__ import annotations

import math

import numpy as np

from costcalc.reference.activations import ACTIVATIONS, sigmoid, softplus
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.convolution import convolved
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import norm
from costcalc.reference.recurrence import States, held_states, hold_states, is_chunked, padded, recurrence
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope

EPS_OF_LENGTH = 1e-6
"""What is added to the square of a query's or key's length before it is divided by its length (`l2norm`)."""


def gated_delta(fields: Fields, x: Array, at: Scope, *, sight: Sight, eps: float) -> Array:
    """Projections, a convolution, the rule, and a gated norm (2412.06464, figure 1). x: (B, T, D) -> (B, T, D)."""
    batch, tokens, width = x.shape
    heads, v_dim = fields["heads"], fields["value_dim"]
    q, k, v = _read(fields, x, at, sight)  # (B, T, N, dk), (B, T, N, dk), (B, T, N, dv)
    log_decay = _log_decay(fields, x, at)  # (B, T, N, dk or 1)
    beta = sigmoid(at.linear("beta", x, heads, bias=False))[..., None]  # (B, T, N, 1)
    if fields["double_beta"]:
        beta = 2 * beta  # a state may then turn round along a key (arXiv 2411.12537)
    start = {"state": np.zeros((batch, heads, fields["key_dim"], v_dim), FLOAT)}  # (B, N, dk, dv)
    if is_chunked(sight, tokens):
        y = _chunk_by_chunk(q, k, v, log_decay, beta, at, chunk=fields["chunk"], start=start, sight=sight)
    else:
        y = _token_by_token(q, k, v, log_decay, beta, at, start=start, sight=sight)  # (B, T, N, dv)
    y = norm({"kind": "rmsnorm", "eps": eps, "weight": True}, y, at, "norm")  # (B, T, N, dv) * (dv)
    activation = of_kind(ACTIVATIONS, fields["gate_activation"], "activation")
    gate = _low_rank("gate", x, heads * v_dim, at, rank=fields["gate_rank"])  # (B, T, N·dv)
    y = y.reshape(batch, tokens, heads * v_dim) * activation(gate)  # (B, T, N·dv)
    return at.linear("output", y, width, bias=False)  # (B, T, N·dv) x (N·dv, D)


def _read(fields: Fields, x: Array, at: Scope, sight: Sight) -> tuple[Array, Array, Array]:
    """Queries, keys and values of the heads, behind one convolution; queries and keys of length 1.

    A key head serves N / K value heads. (B, T, D) -> (B, T, N, dk), (B, T, N, dk), (B, T, N, dv).
    """
    heads, k_dim, v_dim = fields["heads"], fields["key_dim"], fields["value_dim"]
    key_heads = fields["key_heads"] or heads
    parts = [("q", key_heads * k_dim), ("k", key_heads * k_dim), ("v", heads * v_dim)]
    joined = np.concatenate([at.linear(name, x, size, bias=False) for name, size in parts], axis=-1)
    activation = of_kind(ACTIVATIONS, fields["activation"], "activation")
    mixed = convolved(joined, at, taps=fields["d_conv"], bias=fields["conv_bias"], sight=sight)  # (B, T, all of them)
    q, k, v = np.split(activation(mixed), [key_heads * k_dim, 2 * key_heads * k_dim], axis=-1)
    q, k = (some.reshape(*x.shape[:2], key_heads, k_dim) for some in (q, k))  # (B, T, K, dk) each
    q, k = (_of_length_1(some).repeat(heads // key_heads, axis=2) for some in (q, k))  # (B, T, N, dk) each
    return q / math.sqrt(k_dim), k, v.reshape(*x.shape[:2], heads, v_dim)


def _of_length_1(x: Array) -> Array:
    return x / np.sqrt((x * x).sum(axis=-1, keepdims=True) + EPS_OF_LENGTH)


def _log_decay(fields: Fields, x: Array, at: Scope) -> Array:
    """ln a = -A softplus(x W + b), of a head, or of each channel of its keys (Kimi). (B, T, D) -> (B, T, N, dk or 1).

    A, one positive number a head, is held as its logarithm. With a floor, ln a = floor · sigmoid(A (x W + b)), which
    never falls below it (`BailingHybridForgetGate`).
    """
    channels = of_kind({"per_head": 1, "per_channel": fields["key_dim"]}, fields["decay"], "decay")
    heads = fields["heads"]
    step = _low_rank("decay", x, heads * channels, at, rank=fields["decay_rank"])  # (B, T, N·channels)
    step = (step + at.parameter("dt_bias", heads * channels)).reshape(*x.shape[:2], heads, channels)
    rate = np.exp(at.parameter("a_log", heads))[:, None]  # (N, 1)
    if fields["decay_floor"] is not None:
        return FLOAT(fields["decay_floor"]) * sigmoid(rate * step)  # (N, 1) * (B, T, N, channels)
    return -rate * softplus(step)  # (N, 1) * (B, T, N, channels)


def _low_rank(name: str, x: Array, outputs: int, at: Scope, *, rank: int | None) -> Array:
    """One product, or two with `rank` numbers between them. (B, T, D) -> (B, T, outputs)."""
    if rank is None:
        return at.linear(name, x, outputs, bias=False)
    return at.linear(f"{name}_up", at.linear(f"{name}_down", x, rank, bias=False), outputs, bias=False)


def _token_by_token(
    q: Array, k: Array, v: Array, log_decay: Array, beta: Array, at: Scope, *, start: States, sight: Sight
) -> Array:
    """Equation 10 of 2412.06464; with a decay of each channel, equation 1 of 2510.26692. Result: (B, T, N, dv)."""
    decay = np.exp(log_decay)[..., None]  # (B, T, N, dk or 1, 1)

    def step(t: int, states: States) -> tuple[Array, States]:
        key, query = k[:, t, :, None], q[:, t, :, None]  # (B, N, 1, dk) each
        state = decay[:, t] * states["state"]  # (B, N, dk or 1, 1) * (B, N, dk, dv)
        recalled = at.product("scan_recall", key, state)  # (B, N, 1, dk) x (B, N, dk, dv)
        correction = beta[:, t, :, None] * (v[:, t, :, None] - recalled)  # (B, N, 1, dv)
        state = state + at.product("scan_update", key.swapaxes(-1, -2), correction)  # (B, N, dk, 1) x (B, N, 1, dv)
        return at.product("scan_read", query, state)[:, :, 0], {"state": state}  # (B, N, 1, dk) x (B, N, dk, dv)

    return recurrence(step, np.empty(v.shape, FLOAT), start, at, sight=sight)


def _chunk_by_chunk(
    q: Array, k: Array, v: Array, log_decay: Array, beta: Array, at: Scope, *, chunk: int, start: States, sight: Sight
) -> Array:
    """The WY form (2412.06464, section 3.3; 2510.26692, section 3): c tokens at a time. Result: (B, T, N, dv).

    A token's correction is that of the state before the chunk, less what the chunk's earlier corrections have answered
    by then: c linear equations with a triangular matrix, I + L. Its inverse is formed (c³ / 3 FLOPs a chunk and
    head, in no count), and gives corrections for a state of zeros, and what any other state takes from them. Where a
    chunk has fewer tokens than c, tokens are added that correct nothing and let nothing decay.
    """
    tokens = v.shape[1]
    q, k, v, log_decay, beta = (_in_chunks(some, chunk) for some in (q, k, v, log_decay, beta))  # (B, N, n, c, ...)
    since = log_decay.cumsum(axis=-2)  # (B, N, n, c, dk or 1): ln of all decay from the start of the chunk on
    overlaps = beta * _faded(k, k, since, at, "scan_overlaps")  # (B, N, n, c, c)
    inverse = np.linalg.inv(np.eye(chunk, dtype=FLOAT) + np.tril(overlaps, -1))  # (B, N, n, c, c)
    values = at.product("scan_solved_values", inverse, beta * v)  # (B, N, n, c, c) x (B, N, n, c, dv)
    keys = at.product("scan_solved_keys", inverse, beta * np.exp(since) * k)  # (B, N, n, c, c) x (B, N, n, c, dk)
    scores = _faded(q, k, since, at, "scan_scores")  # (B, N, n, c, c)
    asked = q * np.exp(since)  # (B, N, n, c, dk)
    left = since[..., -1:, :]  # (B, N, n, 1, dk or 1)
    entering = (k * np.exp(left - since)).swapaxes(-1, -2)  # (B, N, n, dk, c)
    stays = np.exp(left).swapaxes(-1, -2)  # (B, N, n, dk or 1, 1)
    y, state = np.empty(v.shape, FLOAT), held_states(start, at, sight)["state"]  # (B, N, n, c, dv), (B, N, dk, dv)
    for i in range(v.shape[2]):
        corrections = values[:, :, i] - at.product("scan_recall", keys[:, :, i], state)  # (B, N, c, dk) x (.., dk, dv)
        read = at.product("scan_read", asked[:, :, i], state)  # (B, N, c, dk) x (B, N, dk, dv)
        y[:, :, i] = read + at.product("scan_values", scores[:, :, i], corrections)  # (B, N, c, c) x (B, N, c, dv)
        state = stays[:, :, i] * state + at.product("scan_update", entering[:, :, i], corrections)  # (.., dk, c) x ..
    hold_states({"state": state}, at, sight)
    y = y.transpose(0, 2, 3, 1, 4)  # (B, n, c, N, dv)
    return y.reshape(len(y), -1, *y.shape[3:])[:, :tokens]


def _in_chunks(x: Array, chunk: int) -> Array:
    """(B, T, N, any) -> (B, N, n, c, any), with zeros behind the last token."""
    batch, _, heads, size = x.shape
    whole = padded(x, chunk)  # (B, n·c, N, any)
    return whole.reshape(batch, whole.shape[1] // chunk, chunk, heads, size).transpose(0, 3, 1, 2, 4)


def _faded(a: Array, b: Array, since: Array, at: Scope, name: str) -> Array:
    """a_i · b_j of a chunk's tokens j <= i, of which decay has left e^(since_i - since_j); 0 where j > i.

    a, b: (..., c, dk); since: (..., c, dk or 1); result: (..., c, c). The factor is at most 1, which e^since_i and
    e^-since_j alone are not: a decay of each channel is applied pair by pair.
    """
    earlier = np.tri(a.shape[-2], dtype=bool)[..., None]  # (c, c, 1)
    between = since[..., :, None, :] - since[..., None, :, :]  # (..., c, c, dk or 1)
    left = np.exp(np.where(earlier, between, FLOAT(-np.inf)))  # (..., c, c, dk or 1)
    if left.shape[-1] == 1:
        return at.product(name, a, b.swapaxes(-1, -2)) * left[..., 0]  # (..., c, dk) x (..., dk, c)
    return at.product(name, left * b[..., None, :, :], a[..., None])[..., 0]  # (..., c, c, dk) x (..., c, dk, 1)
