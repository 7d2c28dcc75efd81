"""Hyper-connections (arXiv 2409.19606) whose mixing is doubly stochastic (mHC, arXiv 2512.24880; DeepSeek-V4).

In a shape, A is how many parts the residual stream has.
"""

from __future__ import annotations

import numpy as np

from costcalc.reference.activations import sigmoid
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.block import Sublayers
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import rms_norm
from costcalc.reference.scaled_dot_product import softmax
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


def copied(fields: Fields, x: Array) -> Array:
    """The parts below the first layer. (B, T, D) -> (A, B, T, D)."""
    return np.repeat(x[None], fields["streams"], axis=0)


def connected(how: Fields, fields: Fields, streams: Array, at: Scope, *, sight: Sight) -> Array:
    """A layer: before each sublayer a sum of the parts, behind it all of them anew. (A, B, T, D) -> (A, B, T, D).

    how: of the connections; fields: the layer's.
    """
    parts = Sublayers(fields, at, sight, streams[0])
    runs = {"attention": parts.attend, "mixer": parts.mix, "feed_forward": parts.feed}
    count, eps = how["streams"], fields["norm"]["eps"]
    mixes = of_kind({"doubly_stochastic": True, "none": False}, how["mixing"], "mixing")
    for name, run in runs.items():
        if not fields[name]:
            continue
        here = at.under("hyper_connections").under(name)
        made = (2 + count) * count if mixes else 2 * count
        numbers = np.split(factors(streams, here, made, eps=eps), [count, 2 * count], axis=-1)  # (B, T, A), A and A·A
        gains = here.parameter("gains", 3 if mixes else 2)
        added = np.split(here.parameter("added", made), [count, 2 * count])
        if not mixes:
            gains = np.append(gains, FLOAT(1))  # of no numbers
        scaled = zip(numbers, gains, added, strict=True)
        pre, post, comb = (each * gain + more for each, gain, more in scaled)  # (B, T, A), (B, T, A), (B, T, A·A)
        read = summed(streams, sigmoid(pre) + FLOAT(how["eps"]))  # (B, T, D)
        parts.stream = read
        y = run(parts.normed(read, f"{name}_norm"))  # (B, T, D)
        beside = np.moveaxis(streams, 0, 2)  # (B, T, A, D)
        share = FLOAT(how["magnitude"]) * sigmoid(post)  # (B, T, A)
        if mixes:
            mixing = comb.reshape(*comb.shape[:-1], count, count)  # (B, T, from, to)
            mixing = doubly_stochastic(mixing, iterations=how["iterations"], eps=how["eps"])  # (B, T, from, to)
            beside = here.product("mixing", mixing.swapaxes(-1, -2), beside)  # (B, T, to, from) x (B, T, from, D)
        else:
            share = share + FLOAT(how["eps"])  # (B, T, A)
        streams = np.moveaxis(beside + share[..., None] * y[..., None, :], 2, 0)  # (A, B, T, D)
    return streams


def gathered(how: Fields, streams: Array, at: Scope, *, eps: float) -> Array:
    """The sum that goes to the norm above the last layer. (A, B, T, D) -> (B, T, D)."""
    count = how["streams"]
    numbers = factors(streams, at, count, eps=eps)  # (B, T, A)
    gain, added = at.parameter("gains", 1), at.parameter("added", count)
    return summed(streams, sigmoid(numbers * gain + added) + FLOAT(how["eps"]))  # (B, T, D)


def factors(streams: Array, at: Scope, count: int, *, eps: float) -> Array:
    """So many numbers of each token, of all of its parts beside each other. (A, B, T, D) -> (B, T, count)."""
    whole = np.moveaxis(streams, 0, 2)  # (B, T, A, D)
    flat = whole.reshape(*whole.shape[:2], -1)  # (B, T, A·D)
    return at.linear("factors", rms_norm(flat, eps=eps), count, bias=False)  # (B, T, A·D) x (A·D, count)


def summed(streams: Array, weights: Array) -> Array:
    """(A, B, T, D), (B, T, A) -> (B, T, D)."""
    total: Array = (streams * np.moveaxis(weights, -1, 0)[..., None]).sum(axis=0)
    return total


def doubly_stochastic(logits: Array, *, iterations: int, eps: float) -> Array:
    """Softmax of rows, then columns and rows made to sum to 1 in turn (Sinkhorn and Knopp). (..., A, A) twice."""
    least = FLOAT(eps)
    matrix = softmax(logits) + least  # (..., A, A)
    matrix = matrix / (matrix.sum(axis=-2, keepdims=True) + least)
    for _ in range(iterations - 1):
        matrix = matrix / (matrix.sum(axis=-1, keepdims=True) + least)
        matrix = matrix / (matrix.sum(axis=-2, keepdims=True) + least)
    return matrix
