"""Mamba, a selective state space (arXiv 2312.00752): each channel has a state, and the input chooses what it keeps."""

from __future__ import annotations

import numpy as np

from costcalc.reference.activations import ACTIVATIONS, silu, softplus
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.convolution import convolved
from costcalc.reference.grouped_query import join_heads, split_heads
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import rms_norm
from costcalc.reference.recurrence import States, recurrence
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope

INNER_NORMS = ("dt", "b", "c")


def mamba1(fields: Fields, x: Array, at: Scope, *, sight: Sight, eps: float) -> Array:
    """One branch through a convolution and the selective scan, gated by the other (figure 3). (B, T, D) -> (B, T, D).

    Each of the I = d_inner channels has a state of Z = d_state numbers. A head is an equal part of the channels, which
    chooses for itself what its states take in and give (Zamba, arXiv 2405.16712).
    """
    activation = of_kind(ACTIVATIONS, fields["activation"], "activation")
    inner = fields["d_inner"]
    entered = at.linear("input", x, 2 * inner, bias=fields["bias"])  # (B, T, D) x (D, 2I)
    u, gate = np.split(entered, 2, axis=-1)  # (B, T, I) each
    u = activation(convolved(u, at, taps=fields["d_conv"], bias=fields["conv_bias"], sight=sight))  # (B, T, I)
    y = _scanned(u, *_selected(fields, u, at, eps), at, sight=sight)  # (B, T, I)
    y = (y + at.parameter("d", inner) * u) * silu(gate)  # (B, T, I) + (I) * (B, T, I)
    return at.linear("output", y, x.shape[-1], bias=fields["bias"])  # (B, T, I) x (I, D)


def _selected(fields: Fields, u: Array, at: Scope, eps: float) -> tuple[Array, Array, Array]:
    """Algorithm 2, lines 2 to 4: of each token its step sizes, what enters the state and what leaves it.

    Jamba (arXiv 2403.19887) norms all three. u: (B, T, I); results: (B, T, I), (B, heads, T, Z) twice.
    """
    rank, size = fields["dt_rank"], fields["d_state"]
    chosen = at.each("selection", split_heads(u, fields["heads"]), rank + 2 * size)  # (B, heads, T, I / heads) x ..
    parts = np.split(chosen, [rank, rank + size], axis=-1)  # (B, heads, T, rank), (B, heads, T, Z) twice
    if fields["inner_norms"]:
        parts = [rms_norm(part, eps=eps) for part in parts]
    if fields["inner_norms"] is True:
        named = zip(parts, INNER_NORMS, strict=True)
        parts = [part * at.gain(f"{name}_norm", part.shape[-1]) for part, name in named]
    dt, enters, leaves = parts
    steps = join_heads(at.each("dt", dt, u.shape[-1] // fields["heads"]))  # (B, heads, T, rank) x .. -> (B, T, I)
    return softplus(steps + at.parameter("dt_bias", u.shape[-1])), enters, leaves


def _scanned(u: Array, dt: Array, enters: Array, leaves: Array, at: Scope, *, sight: Sight) -> Array:
    """h = exp(Δ A) h + Δ B u, y = C h: equations 2a and 2b, with Ā of equation 4 and of B̄ its first term, Δ B.

    u, dt: (B, T, I); enters (B), leaves (C): (B, heads, T, Z). Result: (B, T, I).
    """
    batch, _, inner = u.shape
    heads, size = enters.shape[1], enters.shape[-1]
    a = -np.exp(at.parameter("a_log", inner, size))  # (I, Z)
    into = (dt * u).reshape(*u.shape[:2], heads, inner // heads, 1)  # (B, T, heads, I / heads, 1)

    def step(t: int, states: States) -> tuple[Array, States]:
        decay = np.exp(dt[:, t, :, None] * a)  # (B, I, 1) * (I, Z)
        written = at.product("scan_update", into[:, t], enters[:, :, t, None])  # (.., I / heads, 1) x (.., 1, Z)
        state = decay * states["state"] + written.reshape(batch, inner, size)  # (B, I, Z)
        by_head = state.reshape(batch, heads, inner // heads, size)
        read = at.product("scan_read", by_head, leaves[:, :, t, :, None])  # (.., I / heads, Z) x (.., Z, 1)
        return read.reshape(batch, inner), {"state": state}

    start = {"state": np.zeros((batch, inner, size), FLOAT)}
    return recurrence(step, np.empty_like(u), start, at, sight=sight)
