"""RG-LRU, the real-gated linear recurrent unit of Griffin and RecurrentGemma (arXiv 2402.19427, section 2.4)."""

from __future__ import annotations

import numpy as np

from costcalc.reference.activations import ACTIVATIONS, sigmoid, softplus
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.convolution import convolved
from costcalc.reference.grouped_query import join_heads, split_heads
from costcalc.reference.kinds import of_kind
from costcalc.reference.recurrence import States, recurrence
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope

SHARPNESS = 8
"""The constant c of equation 3."""


def rg_lru(fields: Fields, x: Array, at: Scope, *, sight: Sight, eps: float) -> Array:
    """A convolution and the unit, times a branch beside (2402.19427, figure 2). x: (B, T, D) -> (B, T, D)."""
    del eps  # it has no norm of its own
    width, taps = fields["width"], fields["d_conv"]
    activation = of_kind(ACTIVATIONS, fields["activation"], "activation")
    beside = activation(at.linear("gate", x, width, bias=True))  # (B, T, W)
    entering = at.linear("input", x, width, bias=True)  # (B, T, W)
    entering = convolved(entering, at, taps=taps, bias=True, sight=sight, keeps=taps - 1)  # (B, T, W)
    decay, entering = _gated(fields, entering, at, first=sight.start == 0)  # (B, T, W) each

    def step(t: int, states: States) -> tuple[Array, States]:
        state = at.elementwise("scan_update", decay[:, t], states["state"]) + entering[:, t]  # (B, W)
        return state, {"state": state}

    start = {"state": np.zeros((x.shape[0], width), FLOAT)}  # (B, W)
    y = recurrence(step, np.empty(entering.shape, FLOAT), start, at, sight=sight)  # (B, T, W)
    return at.linear("output", y * beside, x.shape[-1], bias=True)  # (B, T, W) x (W, D)


def _gated(fields: Fields, y: Array, at: Scope, *, first: bool) -> tuple[Array, Array]:
    """How much of the state stays, and what enters it (equations 1 to 4). (B, T, W) -> (B, T, W), (B, T, W).

    a^(c r), with ln a = -softplus of the parameter, and √(1 - a^(2 c r)) i y. The first token of a text enters whole:
    there is nothing before it that could stay (`RecurrentGemmaRglru`).
    """
    width, heads = fields["width"], fields["heads"]
    parts = split_heads(y, heads)  # (B, N, T, W / N)
    recurrence_gate, input_gate = (
        sigmoid(join_heads(at.each(name, parts, width // heads)) + at.parameter(f"{name}_bias", width))
        for name in ("recurrence_gate", "input_gate")
    )  # (B, T, W) each
    log_decay = -SHARPNESS * recurrence_gate * softplus(at.parameter("a", width))  # (B, T, W)
    enters = np.sqrt(-np.expm1(2 * log_decay))  # (B, T, W)
    if first:
        enters[:, :1] = 1
    return np.exp(log_decay), enters * input_gate * y
