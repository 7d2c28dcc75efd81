"""A convolution beside a layer, of neighbours on both sides (`ConvLayer` of DeBERTa-v2, arXiv 2006.03654)."""

from __future__ import annotations

import numpy as np

from costcalc.reference.activations import ACTIVATIONS
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import norm
from costcalc.reference.tape import Scope


def with_convolution(how: Fields, x: Array, y: Array, at: Scope, *, norm_of: Fields) -> Array:
    """norm(y + activation(convolved x + b)). x: (B, T, D), what the layer read; y: (B, T, D), what it gives."""
    batch, tokens, width = x.shape
    groups, side = how["groups"], how["taps"] // 2
    padded = np.pad(x, ((0, 0), (side, side), (0, 0))).astype(FLOAT)  # (B, T + taps - 1, D), 0 beyond the text
    seen = padded[:, np.arange(tokens)[:, None] + np.arange(how["taps"])]  # (B, T, taps, D)
    split = seen.reshape(batch, tokens, how["taps"], groups, width // groups).transpose(0, 3, 1, 2, 4)
    rows = split.reshape(batch, groups, tokens, -1)  # (B, groups, T, taps·D/groups)
    mixed = at.each("convolution", rows, width // groups)  # (B, groups, T, D/groups)
    made = mixed.transpose(0, 2, 1, 3).reshape(x.shape) + at.parameter("convolution_bias", width)  # (B, T, D) + (D)
    activation = of_kind(ACTIVATIONS, how["activation"], "activation")
    return norm(norm_of, y + activation(made), at, "convolution_norm")  # (B, T, D)
