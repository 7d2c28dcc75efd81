"""Mixing by a Fourier transform (FNet, arXiv 2105.03824, section 3)."""

from __future__ import annotations

import math

import numpy as np

from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Product, Scope


def fourier(fields: Fields, x: Array, at: Scope, *, sight: Sight, eps: float) -> Array:
    """Re(F_tokens(F_channels(x))) (equation 3), with all tokens of the text. (B, T, D) -> (B, T, D).

    A fast transform is no matrix product: what is written down are its stages, of halves of halves (Cooley and Tukey
    1965), with a multiply-add for each number of each.
    """
    del fields, eps
    if sight.causal:
        raise ValueError(f"{at.path} mixes each token with later ones: it is for an encoder")
    if not x.size:
        return x  # an encoder whose text went through before
    mixed = np.fft.fft(np.fft.fft(x, axis=2), axis=1).real.astype(FLOAT)  # (B, T, D)
    for name, length in (("scan_channels", x.shape[2]), ("scan_tokens", x.shape[1])):
        at.tape.multiplied(at.named(name), Product(math.ceil(math.log2(length)), x.size, 1, 1))
    return mixed
