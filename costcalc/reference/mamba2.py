"""Mamba-2, state space duality (arXiv 2405.21060): one decay a head, so that the scan is also a masked attention."""

from __future__ import annotations

import numpy as np

from costcalc.reference.activations import ACTIVATIONS, silu, softplus
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.convolution import convolved
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import rms_norm
from costcalc.reference.recurrence import States, held_states, hold_states, is_chunked, padded, recurrence
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


def mamba2(fields: Fields, x: Array, at: Scope, *, sight: Sight, eps: float) -> Array:
    """All that the scan needs of one projection, a convolution, the scan, a gated norm (figure 6, section 7.1).

    N heads of P channels, I = N·P; heads of one of G groups share what enters and leaves their states of Z numbers a
    channel (section 7.2). x: (B, T, D) -> (B, T, D).
    """
    activation = of_kind(ACTIVATIONS, fields["activation"], "activation")
    heads, inner, taken = fields["heads"], fields["heads"] * fields["head_dim"], fields["groups"] * fields["d_state"]
    entered = at.linear("input", x, 2 * inner + 2 * taken + heads, bias=fields["bias"])  # (B, T, 2I + 2G·Z + N)
    gate, mixed, dt = np.split(entered, [inner, 2 * inner + 2 * taken], axis=-1)
    mixed = activation(convolved(mixed, at, taps=fields["d_conv"], bias=fields["conv_bias"], sight=sight))
    u, *shared = np.split(mixed, [inner, inner + taken], axis=-1)  # (B, T, I), (B, T, G·Z) twice
    u = u.reshape(*u.shape[:2], heads, inner // heads)  # (B, T, N, P)
    enters, leaves = (of_heads(part, fields["groups"], heads) for part in shared)  # (B, T, N, Z) each
    dt = softplus(dt + at.parameter("dt_bias", heads))  # (B, T, N) + (N)
    decay = -dt * np.exp(at.parameter("a_log", heads))  # (B, T, N), the logarithm of what is left of a state
    into = dt[..., None] * u  # (B, T, N, P)
    if is_chunked(sight, x.shape[1]):
        y = by_chunks(into, decay, enters, leaves, at, chunk=fields["chunk"], sight=sight)  # (B, T, N, P)
    else:
        y = by_tokens(into, decay, enters, leaves, at, sight=sight)  # (B, T, N, P)
    y = y + at.parameter("d", heads)[:, None] * u  # (B, T, N, P) + (N, 1) * (B, T, N, P)
    y = gated(fields, y.reshape(gate.shape), gate, at, eps)  # (B, T, I)
    return at.linear("output", y, x.shape[-1], bias=fields["out_bias"])  # (B, T, I) x (I, D)


def of_heads(x: Array, groups: int, heads: int) -> Array:
    """Each head's share, which is its group's. (B, T, G·Z) -> (B, T, N, Z)."""
    return np.repeat(x.reshape(*x.shape[:2], groups, x.shape[-1] // groups), heads // groups, axis=2)


def gated(fields: Fields, y: Array, gate: Array, at: Scope, eps: float) -> Array:
    """norm(y · silu(gate)) or norm(y) · silu(gate), an RMS norm of each group, or no norm. (B, T, I) -> (B, T, I)."""
    if not fields["gated_norm"]:
        return y * silu(gate)
    gated_first = y if fields["norm_before_gate"] else y * silu(gate)  # (B, T, I)
    groups = fields["groups"]
    by_group = gated_first.reshape(*y.shape[:2], groups, y.shape[-1] // groups)  # (B, T, G, I / G)
    normed = rms_norm(by_group, eps=eps).reshape(y.shape) * at.gain("norm", y.shape[-1])  # (B, T, I) * (I)
    return normed * silu(gate) if fields["norm_before_gate"] else normed


def by_tokens(into: Array, decay: Array, enters: Array, leaves: Array, at: Scope, *, sight: Sight) -> Array:
    """h = a h + (Δ x) Bᵀ, y = h C, token by token (equation 2).

    into (Δ x): (B, T, N, P); decay (log a): (B, T, N); enters (B), leaves (C): (B, T, N, Z). Result: (B, T, N, P).
    """

    def step(t: int, states: States) -> tuple[Array, States]:
        written = at.product("scan_update", into[:, t, :, :, None], enters[:, t, :, None])  # (.., P, 1) x (.., 1, Z)
        state = np.exp(decay[:, t])[..., None, None] * states["state"] + written  # (B, N, P, Z)
        read = at.product("scan_read", state, leaves[:, t, :, :, None])  # (B, N, P, Z) x (B, N, Z, 1)
        return read[..., 0], {"state": state}

    return recurrence(step, np.empty_like(into), _start(into, enters), at, sight=sight)


def by_chunks(into: Array, decay: Array, enters: Array, leaves: Array, at: Scope, *, chunk: int, sight: Sight) -> Array:
    """The same chunk by chunk (section 6, listing 1): inside of one as attention does, with a state between two.

    In a chunk of c tokens, what token j wrote has decayed for i by a_(j+1) .. a_i. Tokens that pad the last chunk write
    nothing and let nothing decay. Shapes as in `by_tokens`.
    """
    tokens = into.shape[1]
    parts = [padded(part, chunk).swapaxes(1, 2) for part in (into, decay, enters, leaves)]  # (B, N, whole chunks, ..)
    state = held_states(_start(into, enters), at, sight)["state"]  # (B, N, P, Z)
    out = np.empty_like(parts[0])  # (B, N, whole chunks, P)
    for first in range(0, out.shape[2], chunk):
        here = slice(first, first + chunk)
        u, log, enter, leave = (part[:, :, here] for part in parts)  # (B, N, c, P), (B, N, c), (B, N, c, Z) twice
        passed = np.cumsum(log, axis=-1)  # (B, N, c), the logarithm of what is left of the state before the chunk
        left = np.where(np.tri(chunk, dtype=bool), passed[..., None] - passed[..., None, :], -np.inf)  # (B, N, c, c)
        scores = at.product("scan_scores", leave, enter.swapaxes(-1, -2)) * np.exp(left)  # (.., c, Z) x (.., Z, c)
        inside = at.product("scan_values", scores, u)  # (B, N, c, c) x (B, N, c, P)
        before = at.product("scan_read", leave, state.swapaxes(-1, -2))  # (B, N, c, Z) x (B, N, Z, P)
        out[:, :, here] = inside + np.exp(passed)[..., None] * before  # (B, N, c, P)
        until_end = np.exp(passed[..., -1:] - passed)[..., None] * u  # (B, N, c, P)
        written = at.product("scan_update", until_end.swapaxes(-1, -2), enter)  # (B, N, P, c) x (B, N, c, Z)
        state = np.exp(passed[..., -1])[..., None, None] * state + written  # (B, N, P, Z)
    hold_states({"state": state}, at, sight)
    return out.swapaxes(1, 2)[:, :tokens]


def _start(into: Array, enters: Array) -> States:
    batch, _, heads, channels = into.shape
    return {"state": np.zeros((batch, heads, channels, enters.shape[-1]), FLOAT)}
