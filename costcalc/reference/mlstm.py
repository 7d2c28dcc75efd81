"""mLSTM, the matrix memory of xLSTM (arXiv 2405.04517, section 2.3), as in xLSTM-7B (2503.13427)."""

from __future__ import annotations

import math

import numpy as np

from costcalc.reference.activations import sigmoid, softplus
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.norms import norm
from costcalc.reference.recurrence import States, recurrence
from costcalc.reference.scaled_dot_product import soft_cap
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope

EPS_OF_WEIGHTS = 1e-6
"""What is added to the sum of weights before a memory's answer is divided by it (`xLSTMConfig.eps`)."""


def mlstm(fields: Fields, x: Array, at: Scope, *, sight: Sight, eps: float) -> Array:
    """Projections (equations 22 to 27), the memory, a LayerNorm of each head, a gate. x: (B, T, D) -> (B, T, D)."""
    (batch, tokens, width), heads, bias = x.shape, fields["heads"], fields["bias"]
    inner = heads * fields["v_dim"]
    sizes = {"q": fields["qk_dim"], "k": fields["qk_dim"], "v": fields["v_dim"]}
    q, k, v = (
        at.linear(name, x, heads * size, bias=bias).reshape(batch, tokens, heads, size) for name, size in sizes.items()
    )  # (B, T, N, dk), (B, T, N, dk), (B, T, N, dv)
    enters, stays = (
        soft_cap(at.linear(name, x, heads, bias=True), fields["gate_softcap"]) for name in ("input_gate", "forget_gate")
    )  # (B, T, N) each
    y = _memory(q, k, v, enters, stays, at, sight=sight)  # (B, T, N, dv)
    how = {"kind": "layernorm", "eps": eps, "weight": True, "bias": bias}
    y = norm(how, y, at, "norm", gains=y.shape[2:]).reshape(batch, tokens, inner)  # (B, T, N, dv) * (N, dv)
    y = sigmoid(at.linear("gate", x, inner, bias=bias)) * y  # (B, T, N·dv)
    return at.linear("output", y, width, bias=bias)  # (B, T, N·dv) x (N·dv, D)


def _memory(q: Array, k: Array, v: Array, enters: Array, stays: Array, at: Scope, *, sight: Sight) -> Array:
    """C <- f C + i k vᵀ, n <- f n + i k, and Cᵀ q / max(|n · q|, 1) (equations 19 to 21). Result: (B, T, N, dv).

    i = e^enters may be anything above 0, so C and n are held divided by e^m, m the running maximum of equations 15 to
    17. enters, stays: (B, T, N), what the input gate and the forget gate read.
    """
    batch, _, heads, qk_dim = q.shape
    q, log_stays = q / math.sqrt(qk_dim), -softplus(-stays)  # (B, T, N, dk), (B, T, N): ln of a sigmoid

    def step(t: int, states: States) -> tuple[Array, States]:
        maximum = np.maximum(log_stays[:, t] + states["maximum_state"], enters[:, t])  # (B, N)
        forget = np.exp(log_stays[:, t] + states["maximum_state"] - maximum)[..., None]  # (B, N, 1)
        key = np.exp(enters[:, t] - maximum)[..., None] * k[:, t]  # (B, N, dk)
        new = at.product("scan_update", key[..., None], v[:, t, :, None])  # (B, N, dk, 1) x (B, N, 1, dv)
        state = forget[..., None] * states["state"] + new  # (B, N, dk, dv)
        normalizer = forget * states["normalizer_state"] + key  # (B, N, dk)
        read = at.product("scan_read", q[:, t, :, None], state)[:, :, 0]  # (B, N, 1, dk) x (B, N, dk, dv)
        weights = np.abs((q[:, t] * normalizer).sum(axis=-1))  # (B, N)
        y = read / (np.maximum(weights, np.exp(-maximum)) + EPS_OF_WEIGHTS)[..., None]  # (B, N, dv)
        return y, {"state": state, "normalizer_state": normalizer, "maximum_state": maximum}

    start = {
        "state": np.zeros((batch, heads, qk_dim, v.shape[-1]), FLOAT),
        "normalizer_state": np.zeros((batch, heads, qk_dim), FLOAT),
        "maximum_state": np.zeros((batch, heads), FLOAT),
    }
    return recurrence(step, np.empty(v.shape, FLOAT), start, at, sight=sight)
