"""RWKV-4 (arXiv 2305.13048): mixing over time with weights that decay, and a network that sees the token before."""

from __future__ import annotations

import numpy as np

from costcalc.reference.activations import relu_squared, sigmoid
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.recurrence import States, held_states, hold_states, kept_of
from costcalc.reference.recurrence import recurrence as run
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope

NOTHING = FLOAT(-1e38)
"""The largest exponent so far, where there was none."""


def rwkv(fields: Fields, x: Array, at: Scope, *, sight: Sight, eps: float) -> Array:
    """Time mixing: (sigmoid(r) · wkv) W_o (section 3.1). x: (B, T, D) -> (B, T, D)."""
    del eps
    width, before = fields["width"], _before(x, at, sight)  # (B, T, D)
    r, k, v = (at.linear(name, _mixed(name, x, before, at), width, bias=False) for name in "rkv")  # (B, T, W) each
    y = weighted_mean(k, v, at, sight=sight)  # (B, T, W)
    return at.linear("output", sigmoid(r) * y, x.shape[-1], bias=False)  # (B, T, W) x (W, D)


def rwkv_channel(fields: Fields, x: Array, at: Scope, *, sight: Sight) -> Array:
    """Channel mixing: sigmoid(r) · (relu(k)² W_v) (section 3.1). x: (B, T, D) -> (B, T, D)."""
    width, before = x.shape[-1], _before(x, at, sight)  # (B, T, D)
    r = at.linear("r", _mixed("r", x, before, at), width, bias=False)  # (B, T, D) x (D, D)
    k = at.linear("k", _mixed("k", x, before, at), fields["d_ff"], bias=False)  # (B, T, D) x (D, F)
    return sigmoid(r) * at.linear("v", relu_squared(k), width, bias=False)  # (B, T, F) x (F, D)


def weighted_mean(k: Array, v: Array, at: Scope, *, sight: Sight) -> Array:
    """The mean of all values so far, whose weights e^k decay by e^-w a token, the newest by e^u (section 3.1.2).

    Numerator and denominator are held divided by e to the largest exponent so far, so that no power overflows (appendix
    D). k, v: (B, T, W) -> (B, T, W).
    """
    batch, _, width = k.shape
    decay = -np.exp(at.parameter("time_decay", width))  # (W), -w
    first = at.parameter("time_first", width)  # (W), u

    def step(t: int, states: States) -> tuple[Array, States]:
        over, under, top = states["state"].swapaxes(0, 1)  # (B, W) each
        old, new, _ = _apart(top, k[:, t] + first)  # (B, W) each
        y = (old * over + at.elementwise("scan_read", new, v[:, t])) / (old * under + new)  # (B, W)
        old, new, top = _apart(top + decay, k[:, t])  # (B, W) each
        over = old * over + at.elementwise("scan_update", new, v[:, t])  # (B, W)
        return y, {"state": np.stack([over, old * under + new, top], axis=1)}  # (B, 3, W)

    start = np.zeros((batch, 3, width), FLOAT)
    start[:, 2] = NOTHING
    return run(step, np.empty_like(k), {"state": start}, at, sight=sight)


def _apart(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """e^a and e^b, both divided by e to the larger of the two; and the larger."""
    top = np.maximum(a, b)
    return np.exp(a - top), np.exp(b - top), top


def _mixed(name: str, x: Array, before: Array, at: Scope) -> Array:
    """Each number of a token with that of the one before it (section 3.1.1). (B, T, D) twice -> (B, T, D)."""
    mix = at.parameter(f"mix_{name}", x.shape[-1])  # (D)
    return x * mix + before * (1 - mix)


def _before(x: Array, at: Scope, sight: Sight) -> Array:
    """Of each token the one before it, zeros before the first; the last one that stays is held. (B, T, D) twice."""
    start = {"shift_state": np.zeros_like(x, shape=(x.shape[0], x.shape[2]))}  # (B, D)
    seen = np.concatenate([held_states(start, at, sight)["shift_state"][:, None], x], axis=1)  # (B, 1 + T, D)
    hold_states({"shift_state": seen[:, kept_of(sight, x.shape[1])].copy()}, at, sight)  # (B, D)
    return seen[:, :-1]
