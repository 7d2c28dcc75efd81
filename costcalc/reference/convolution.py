"""Causal depthwise convolutions: each channel is a weighted sum of its own latest numbers."""

from __future__ import annotations

import numpy as np

from costcalc.reference.arrays import FLOAT, Array
from costcalc.reference.recurrence import held_states, hold_states, kept_of
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


def convolved(x: Array, at: Scope, *, taps: int, bias: bool, sight: Sight, keeps: int | None = None) -> Array:
    """y_t = Σ_i w_i x_(t - taps + 1 + i) + b in every channel, of which `taps` latest inputs are held, or `keeps`.

    What came before the first token is 0 (arXiv 2312.00752, figure 3). An output needs taps - 1 earlier inputs; most
    classes hold one more. x: (B, T, C) -> (B, T, C).
    """
    batch, tokens, channels = x.shape
    keeps = taps if keeps is None else keeps
    start = {"conv_state": np.zeros((batch, keeps, channels), FLOAT)}
    seen = np.concatenate([held_states(start, at, sight)["conv_state"], x], axis=1)  # (B, keeps + T, C)
    kept = kept_of(sight, tokens)
    hold_states({"conv_state": seen[:, kept : kept + keeps].copy()}, at, sight)  # (B, keeps, C)
    latest = seen[:, keeps - taps + 1 :]  # (B, taps - 1 + T, C)
    windows = latest[:, np.arange(tokens)[:, None] + np.arange(taps)]  # (B, T, taps, C)
    y = at.each("conv", windows.transpose(0, 3, 1, 2), 1)[..., 0].swapaxes(1, 2)  # (B, C, T, taps) x (C, taps, 1)
    return y + at.parameter("conv_bias", channels) if bias else y  # (B, T, C) + (C)
