"""Adapters of languages (X-MOD, arXiv 2205.06266, section 3), as `XmodOutput` runs them."""

from __future__ import annotations

from collections.abc import Callable

from costcalc.reference.activations import ACTIVATIONS
from costcalc.reference.arrays import Array, Fields
from costcalc.reference.kinds import of_kind
from costcalc.reference.tape import Scope


def adapted(how: Fields, x: Array, at: Scope, *, normed: Callable[[Array, str], Array]) -> Array:
    """x through the network of a text's language, the first one. x: (B, T, D), the sum behind a feed-forward network.

    normed: a norm of the layer. Result: (B, T, D).
    """
    names = {"own": "adapter_norm", "shared": "feed_forward_norm"}
    read = normed(x, of_kind(names, how["reads"], "norm of adapters")) if how["reads"] else x  # (B, T, D)
    here = at.under("adapter").one_of(0, how["languages"])
    activation = of_kind(ACTIVATIONS, how["activation"], "activation")
    hidden = activation(here.linear("down", read, how["width"], bias=True))  # (B, T, D) x (D, W)
    made = here.linear("up", hidden, x.shape[-1], bias=True)  # (B, T, W) x (W, D)
    return made + of_kind({"normed": read, "plain": x}, how["residual"], "residual of adapters")
