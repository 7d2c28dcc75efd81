"""Normalisation over the last axis."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from costcalc.reference.arrays import Array, Fields, floats
from costcalc.reference.kinds import of_kind
from costcalc.reference.tape import Scope


def layer_norm(x: Array, *, eps: float = 1e-5) -> Array:
    """(x - mean) / √(variance + eps) over the last axis: LayerNorm before gain, bias (arXiv 1607.06450, eq. 3, 4)."""
    x = floats(x)
    centred = x - x.mean(axis=-1, keepdims=True)  # (..., D)
    variance = (centred * centred).mean(axis=-1, keepdims=True)  # (..., 1)
    return centred / np.sqrt(variance + eps)  # (..., D)


def rms_norm(x: Array, *, eps: float = 1e-6) -> Array:
    """x / √(mean square + eps) over the last axis: RMSNorm before its gain (arXiv 1910.07467, eq. 4)."""
    x = floats(x)
    mean_square = (x * x).mean(axis=-1, keepdims=True)  # (..., 1)
    return x / np.sqrt(mean_square + eps)  # (..., D)


def unit_norm(x: Array, *, eps: float = 1e-6) -> Array:
    """x / √(sum of squares + eps) over the last axis: vectors of length 1 (nGPT, arXiv 2410.01131, section 2.2)."""
    x = floats(x)
    return x / np.sqrt((x * x).sum(axis=-1, keepdims=True) + eps)  # (..., D)


NORMS: dict[str, Callable[..., Array]] = {"layernorm": layer_norm, "rmsnorm": rms_norm}


def norm(fields: Fields, x: Array, at: Scope, name: str, *, gains: tuple[int, ...] | None = None) -> Array:
    """The norm of kind `fields["kind"]` with its own gain and bias, where it has them.

    x: (..., D), normalised over D, which may be the model's width, a head's or a whole projection's. gains: the shape
    of gain and bias, which goes with that of x; None for (D).
    """
    shape = x.shape[-1:] if gains is None else gains
    normed = unit_norm if fields.get("unit") else of_kind(NORMS, fields["kind"], "norm")
    if fields.get("normalized", True):  # of MobileBERT's the gain and the bias are left
        x = normed(x, eps=fields["eps"])  # (..., D)
    if fields["weight"]:
        x = x * at.gain(name, prod(shape)).reshape(shape)  # (..., D) * (D)
    if fields.get("bias"):  # RMSNorm has no such field
        x = x + at.parameter(f"{name}_bias", prod(shape)).reshape(shape)  # (..., D) + (D)
    return x
