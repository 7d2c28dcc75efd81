"""AltUp, alternating updates (arXiv 2301.13310, section 3): several states, of which a layer computes one.

In a shape, A is how many states there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from costcalc.reference.activations import tanh
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.norms import norm
from costcalc.reference.tape import Scope

LEAST = 1e-5
"""Of a mean square that is divided by (Gemma-3n)."""


def spread(fields: Fields, x: Array, at: Scope) -> Array:
    """The states below the first layer: the embeddings, and products of them that are made as long as they are.

    x: (B, T, D); at: the stack's place for this; result: (A, B, T, D).
    """
    others = fields["inputs"] - 1
    made = [at.one_of(i, others).linear("below", x, x.shape[-1], bias=False) for i in range(others)]  # (B, T, D) each
    return np.stack([x, *(as_long_as(x, y) for y in made)])  # (A, B, T, D)


def gathered(fields: Fields, states: Array, at: Scope) -> Array:
    """The states above the last layer as one: the mean of the first and of products of the others, as long as it.

    (A, B, T, D) -> (B, T, D).
    """
    first, others, width = states[0], fields["inputs"] - 1, states.shape[-1]
    made = [at.one_of(i, others).linear("above", states[i + 1], width, bias=False) for i in range(others)]
    together = np.stack([first, *(as_long_as(first, y) for y in made)])  # (A, B, T, D)
    mean: Array = together.mean(axis=0)  # (B, T, D)
    return mean


def as_long_as(x: Array, y: Array) -> Array:
    """y at the root mean square of x. (B, T, D) twice -> (B, T, D)."""
    wanted = np.sqrt(np.mean(x * x, axis=-1, keepdims=True))  # (B, T, 1)
    found = np.sqrt(np.maximum(np.mean(y * y, axis=-1, keepdims=True), LEAST))  # (B, T, 1)
    result: Array = y * wanted / found
    return result


def updated(
    fields: Fields, states: Array, at: Scope, *, norm_of: Fields, sublayers: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """A layer: all states predicted, one of them computed, all corrected (algorithm 1).

    states: (A, B, T, D). Result: the corrected states, and the active one of them times D numbers of its own, which a
    per-layer input reads: (B, T, D).
    """
    active = fields["active"]
    predicted = states + mixed(fields, states, at, norm_of=norm_of)  # (A, B, T, D)
    computed = sublayers(predicted[active])  # (B, T, D)
    again = replace(at, lender=at.lender or at.path)  # the router once more, with the weights that it has
    routes = routed(fields, computed, again, norm_of=norm_of)  # (B, T, A)
    factors = 1 + at.linear("correction", routes, fields["inputs"], bias=False)  # (B, T, A) x (A, A)
    innovation = computed - predicted[active]  # (B, T, D)
    corrected: Array = predicted + innovation * np.moveaxis(factors, -1, 0)[..., None]  # (B, T, D) * (A, B, T, 1)
    return corrected, corrected[active] * at.gain("output_scale", states.shape[-1])  # (B, T, D) * (D)


def mixed(fields: Fields, states: Array, at: Scope, *, norm_of: Fields) -> Array:
    """Each state as a sum of all, by A x A numbers that each token has of its own. (A, B, T, D) -> (A, B, T, D)."""
    count = fields["inputs"]
    routes = routed(fields, states[fields["active"]], at, norm_of=norm_of)  # (B, T, A)
    numbers = at.linear("prediction", routes, count * count, bias=False)  # (B, T, A) x (A, A·A)
    numbers = numbers.reshape(*routes.shape[:-1], count, count).swapaxes(-1, -2)  # (B, T, from, to)
    return np.moveaxis(at.product("mixing", np.moveaxis(states, 0, -1), numbers), -1, 0)  # (B, T, D, A) x (B, T, A, A)


def routed(fields: Fields, x: Array, at: Scope, *, norm_of: Fields) -> Array:
    """tanh(norm(x) W / D). (B, T, D) -> (B, T, A)."""
    read = norm(norm_of, x, at, "router_norm") * FLOAT(1 / x.shape[-1])  # (B, T, D)
    return tanh(at.linear("router", read, fields["inputs"], bias=False))  # (B, T, D) x (D, A)
