"""A gated short convolution, the mixer of LFM2 (arXiv 2511.23404; `Lfm2ShortConv`)."""

from __future__ import annotations

import numpy as np

from costcalc.reference.arrays import Array, Fields
from costcalc.reference.convolution import convolved
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


def short_conv(fields: Fields, x: Array, at: Scope, *, sight: Sight, eps: float) -> Array:
    """C * conv(B * h), of three projections of the input; it has no norm of its own. x: (B, T, D) -> (B, T, D)."""
    del eps
    width, bias = x.shape[-1], fields["bias"]
    before, behind, h = np.split(at.linear("input", x, 3 * width, bias=bias), 3, axis=-1)  # (B, T, D) each
    mixed = convolved(before * h, at, taps=fields["d_conv"], bias=bias, sight=sight)  # (B, T, D)
    return at.linear("output", behind * mixed, width, bias=bias)  # (B, T, D) x (D, D)
