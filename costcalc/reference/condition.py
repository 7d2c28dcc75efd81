"""A gain of each channel that follows from one condition of a whole pass: the delay of a live transcript."""

from __future__ import annotations

import numpy as np

from costcalc.reference.activations import gelu
from costcalc.reference.arrays import FLOAT, Array
from costcalc.reference.tape import Scope

DELAY = 6
"""Tokens that a transcript may lag behind the sound (`default_num_delay_tokens` of Voxtral Realtime)."""


def conditioned(rank: int, d_model: int, at: Scope) -> Array:
    """gelu(t A) B, (1, D), the same for all tokens of a pass. t: (1, D), cosines and sines of the delay at D/2
    frequencies that fall from 1 to almost 1/10,000 (`VoxtralRealtimeTimeEmbedding`).
    """
    half = d_model // 2
    angles = DELAY * 10_000.0 ** (-np.arange(half) / half)  # (D/2)
    t = np.concatenate([np.cos(angles), np.sin(angles)]).astype(FLOAT)[None]  # (1, D)
    narrow = gelu(at.linear("in", t, rank, bias=False))  # (1, D) x (D, R)
    return at.linear("out", narrow, d_model, bias=False)  # (1, R) x (R, D)
