"""The network in front of a router's scores (ZAYA1, arXiv 2511.17127; `ZayaRouter`)."""

from __future__ import annotations

from costcalc.reference.activations import gelu
from costcalc.reference.arrays import Array, Fields
from costcalc.reference.norms import norm
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


def through_network(how: Fields, rows: Array, at: Scope, sight: Sight) -> Array:
    """Down to R numbers; plus those of the router before, each times a number (depth averaging); norm; twice GELU.

    What the next router adds is the sum, before the norm. rows: (B·T, D) -> (B·T, R).
    """
    width = how["width"]
    inside = at.linear("router_down", rows, width, bias=True)  # (B·T, D) x (D, R)
    if how["carried"]:
        gain = at.gain("router_carried_gain", width)  # (R)
        if width in sight.carried:
            inside = inside + sight.carried[width] * gain  # (B·T, R)
    sight.carried[width] = inside
    y = norm(how["norm"], inside, at, "router_norm")  # (B·T, R)
    for name in ("router_inner1", "router_inner2"):
        y = gelu(at.linear(name, y, width, bias=True))  # (B·T, R) x (R, R)
    return y
