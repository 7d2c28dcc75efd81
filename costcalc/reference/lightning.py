"""Lightning attention (arXiv 2401.04658), as in MiniMax-01 (2501.08313, section 2.2.1): linear attention that decays.

A head's state is S <- λ S + k vᵀ, with y = Sᵀ q and a λ of its own that nothing learns. Block by block gives the same:
what is inside a block as products of queries and keys, what came before it by the state.
"""

from __future__ import annotations

import numpy as np

from costcalc.reference.activations import ACTIVATIONS, sigmoid
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.grouped_query import join_heads, split_heads
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import norm
from costcalc.reference.recurrence import States, held_states, hold_states, is_chunked, recurrence
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope

ALMOST_NOTHING = 1e-5


def lightning(fields: Fields, x: Array, at: Scope, *, sight: Sight, eps: float) -> Array:
    """Linear attention, one norm over all heads, and a gate. x: (B, T, D) -> (B, T, D)."""
    heads, head_dim = fields["heads"], fields["head_dim"]
    activation = of_kind(ACTIVATIONS, fields["activation"], "activation")
    made = (activation(at.linear(name, x, heads * head_dim, bias=False)) for name in "qkv")  # (B, T, N·H) each
    q, k, v = (split_heads(some, heads) for some in made)  # (B, N, T, H) each
    start = {"state": np.zeros((x.shape[0], heads, head_dim, head_dim), FLOAT)}  # (B, N, H, H)
    run = _block_by_block if is_chunked(sight, x.shape[1]) else _token_by_token
    y = run(q, k, v, slopes(heads, sight), at, chunk=fields["chunk"], start=start, sight=sight)  # (B, N, T, H)
    y = norm({"kind": "rmsnorm", "eps": eps, "weight": True}, join_heads(y), at, "norm")  # (B, T, N·H)
    y = sigmoid(at.linear("gate", x, heads * head_dim, bias=False)) * y  # (B, T, N·H)
    return at.linear("output", y, x.shape[-1], bias=False)  # (B, T, N·H) x (N·H, D)


def slopes(heads: int, sight: Sight) -> Array:
    """-ln λ of each head h = 1 .. N in layer l = 0 .. L - 1: 2^(-8h / N) (1 - l / (L - 1)). (N).

    The later a layer, the longer it remembers (TransNormerLLM, arXiv 2307.14995); the last one would for ever, but for
    two numbers of almost nothing (`MiniMaxLightningAttention`).
    """
    shrinks = 1 - sight.layer / (sight.layers - 1 + ALMOST_NOTHING) + ALMOST_NOTHING
    return (shrinks * 2.0 ** (-8 * np.arange(1, heads + 1) / heads)).astype(FLOAT)


def _token_by_token(
    q: Array, k: Array, v: Array, slope: Array, at: Scope, *, chunk: int, start: States, sight: Sight
) -> Array:
    """The state decays and takes in a token, then answers its query. (B, N, T, H) each -> (B, N, T, H)."""
    del chunk
    decay = np.exp(-slope)[:, None, None]  # (N, 1, 1)

    def step(t: int, states: States) -> tuple[Array, States]:
        key, value, query = (
            k[:, :, t, :, None],
            v[:, :, t, None],
            q[:, :, t, None],
        )  # (.., H, 1), (.., 1, H), (.., 1, H)
        state = decay * states["state"] + at.product("scan_update", key, value)  # (B, N, H, 1) x (B, N, 1, H)
        return at.product("scan_read", query, state)[:, :, 0], {"state": state}  # (B, N, 1, H) x (B, N, H, H)

    batch, heads, tokens, head_dim = q.shape
    y = recurrence(step, np.empty((batch, tokens, heads, head_dim), FLOAT), start, at, sight=sight)
    return y.swapaxes(1, 2)


def _block_by_block(
    q: Array, k: Array, v: Array, slope: Array, at: Scope, *, chunk: int, start: States, sight: Sight
) -> Array:
    """Blocks of c tokens, the last one of those that are left (2401.04658, algorithm 1). -> (B, N, T, H)."""
    slope = slope[:, None, None]  # (N, 1, 1)
    y, state = np.empty(q.shape, FLOAT), held_states(start, at, sight)["state"]  # (B, N, T, H), (B, N, H, H)
    for first in range(0, q.shape[2], chunk):
        here = slice(first, first + chunk)
        query, key, value = q[:, :, here], k[:, :, here], v[:, :, here]  # (B, N, c, H) each
        size = query.shape[2]
        number = np.arange(1, size + 1, dtype=FLOAT)[:, None]  # (c, 1)
        back = np.where(number >= number.T, number - number.T, FLOAT(np.inf))  # (c, c): tokens back, none ahead
        scores = at.product("scan_scores", query, key.swapaxes(-1, -2)) * np.exp(-slope * back)  # (B, N, c, c)
        asked = query * np.exp(-slope * number)  # (B, N, c, H) * (N, c, 1)
        inside = at.product("scan_values", scores, value)  # (B, N, c, c) x (B, N, c, H)
        y[:, :, here] = inside + at.product("scan_read", asked, state)  # (B, N, c, H) x (B, N, H, H)
        entering = key * np.exp(-slope * (size - number))  # (B, N, c, H) * (N, c, 1)
        entered = at.product("scan_update", entering.swapaxes(-1, -2), value)  # (B, N, H, c) x (B, N, c, H)
        state = np.exp(-slope * size) * state + entered  # (B, N, H, H)
    hold_states({"state": state}, at, sight)
    return y
