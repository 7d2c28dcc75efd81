"""Activation functions, elementwise: any shape in, the same shape and dtype out."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from costcalc.reference.arrays import Array, floats

ERF_AT_ONCE = 65_536


def relu(x: Array) -> Array:
    """max(x, 0) (arXiv 1706.03762, equation 2)."""
    return np.maximum(floats(x), 0)


def relu_squared(x: Array) -> Array:
    """max(x, 0)^2 (Primer, arXiv 2109.08668)."""
    return relu(x) ** 2


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x), the logistic function of gates (arXiv 1612.08083), with tanh, which cannot overflow."""
    return 0.5 * (1 + np.tanh(0.5 * floats(x)))


def silu(x: Array) -> Array:
    """x · sigmoid(x): SiLU, also called Swish (arXiv 1702.03118, 1710.05941)."""
    x = floats(x)
    return x * sigmoid(x)


def gelu(x: Array) -> Array:
    """x · Φ(x), with Φ the normal distribution function by erf (arXiv 1606.08415, section 2)."""
    x = floats(x)
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def erf(x: Array) -> Array:
    """The error function, which NumPy does not have: number by number, and ERF_AT_ONCE of them as Python's floats."""
    flat = x.ravel()
    out = np.empty_like(flat)
    for start in range(0, flat.size, ERF_AT_ONCE):
        part = slice(start, start + ERF_AT_ONCE)
        out[part] = [*map(math.erf, flat[part].tolist())]
    return out.reshape(x.shape)


def gelu_tanh(x: Array) -> Array:
    """0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))): GELU's approximation in the same paper, which GPT-2 uses."""
    x = floats(x)
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def quick_gelu(x: Array) -> Array:
    """x · sigmoid(1.702 x): GELU's sigmoid approximation in the same paper (CLIP)."""
    x = floats(x)
    return x * sigmoid(1.702 * x)


def softplus(x: Array) -> Array:
    """ln(1 + e^x), a relu with a round corner (Dugas et al., 2000); e^x is not formed where it would overflow."""
    return np.logaddexp(floats(x), np.zeros((), floats(x).dtype))


def tanh(x: Array) -> Array:
    """(e^x - e^-x) / (e^x + e^-x)."""
    return np.tanh(floats(x))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": gelu,
    "gelu_new": gelu_tanh,
    "gelu_tanh": gelu_tanh,
    "quick_gelu": quick_gelu,
    "relu": relu,
    "relu_squared": relu_squared,
    "sigmoid": sigmoid,
    "silu": silu,
    "softplus": softplus,
    "tanh": tanh,
}
