"""A gain and a shift of each channel, without a norm before them."""

from __future__ import annotations

from costcalc.reference.arrays import Array
from costcalc.reference.tape import Scope


def affine(x: Array, at: Scope, name: str) -> Array:
    """(x + shift) · gain, channel by channel (`ZayaResidualScaling`). x: (..., D) -> (..., D)."""
    width = x.shape[-1]
    return (x + at.parameter(f"{name}_shift", width)) * at.gain(f"{name}_gain", width)  # (..., D) * (D)
