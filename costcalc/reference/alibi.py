"""ALiBi (arXiv 2108.12409): scores fall with the distance, in each head with a slope of its own."""

from __future__ import annotations

import numpy as np

from costcalc.reference.arrays import FLOAT, Array


def alibi_slopes(heads: int, *, max_bias: float = 8.0) -> Array:
    """2^(-max_bias · n / N) for n = 1 .. N, where N is a power of two; (N), float64.

    Of another number of heads as many as the power of two below it have those of that power, and the rest every second
    one, from the first on, of the power above (the authors' code; BLOOM, MPT).
    """
    below = 2 ** (heads.bit_length() - 1)  # the largest power of two that is no more than N
    own = np.arange(1, below + 1) / below
    between = np.arange(1, 2 * (heads - below), 2) / (2 * below)
    steepness: Array = 2.0 ** (-max_bias * np.concatenate([own, between]))
    return steepness


def alibi_numbers(heads: int, distances: Array, *, max_bias: float, slope_scale: float) -> Array:
    """What is added to a query's scores: (s) distances of keys -> (N, s). In an encoder both sides fall alike."""
    falls = slope_scale * alibi_slopes(heads, max_bias=max_bias)  # (N)
    return (-falls[:, None] * np.abs(distances)).astype(FLOAT)  # (N, 1) * (s)
