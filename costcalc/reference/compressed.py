"""DeepSeek-V4's attention: queries meet a window of tokens, and entries that stand for many (`DeepseekV4Attention`).

What is a key is a value too. A value brings its rotation with it, so that what a query gets is turned back by its own
position: what is left depends on how far apart they are.
"""

from __future__ import annotations

import math

import numpy as np

from costcalc.reference.arrays import Array, Fields
from costcalc.reference.compression import chosen_entries, entries
from costcalc.reference.grouped_query import join_heads, split_heads
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import norm, rms_norm
from costcalc.reference.on_scores import OfDistances
from costcalc.reference.positions import TURNED
from costcalc.reference.scaled_dot_product import attention_weights, seen_from
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


def compressed_attention(
    fields: Fields,
    x: Array,
    at: Scope,
    *,
    positions: Fields,
    sight: Sight,
    added: OfDistances | None = None,
    name: str | None = None,
) -> Array:
    """Self-attention of T new tokens over themselves and what the request holds. x: (B, T, D) -> (B, T, D)."""
    del name, added  # no other layer looks at these keys, and positions turn them
    heads, width, norm_of = fields["heads"], fields["head_dim"], fields["norm"]
    here = sight.start + np.arange(x.shape[1])  # (T)
    turn = of_kind(TURNED, positions["kind"], "positions")
    latent = norm(norm_of, at.linear("q_down", x, fields["q_rank"], bias=False), at, "q_norm")  # (B, T, R)
    q = split_heads(at.linear("q_up", latent, heads * width, bias=False), heads)  # (B, N, T, H)
    q = turn(positions, rms_norm(q, eps=norm_of["eps"]), here)  # (B, N, T, H)
    kv = norm(norm_of, at.linear("kv", x, width, bias=False), at, "kv_norm")  # (B, T, H)
    kv = turn(positions, kv[:, None], here)[:, 0]  # (B, T, H)
    if sight.request is not None:
        new = kv
        for array in ("k_cache", "v_cache") if fields["held_twice"] else ("kv_cache",):
            kv = sight.request.extended(at.named(array), new, window=fields["window"])  # (B, S, H)
    mixed = _mixed(fields, q, kv, _behind(fields, x, latent, at, positions=positions, sight=sight), at, here)
    return _projected_back(fields, turn(positions, mixed, -here), x.shape[-1], at)


Behind = tuple[Array, list[Array | None]]
"""Entries (B, C, H), and by new token which of them it meets, (B, c), or None for all before it."""


def _behind(fields: Fields, x: Array, latent: Array, at: Scope, *, positions: Fields, sight: Sight) -> Behind | None:
    how, there = fields["compression"], at.under("compression")
    if how is None:
        return None
    common = {"norm_of": fields["norm"], "positions": positions, "sight": sight}
    made = entries(how, x, there, width=fields["head_dim"], **common)  # (B, C, H)
    if how["choice"] is None:
        return made, [None] * x.shape[1]
    return made, [*chosen_entries(how, x, latent, there.under("choice"), **common)]


def _mixed(fields: Fields, q: Array, kv: Array, behind: Behind | None, at: Scope, here: Array) -> Array:
    """The weighted mean of tokens and entries. q: (B, N, T, H); kv: (B, S, H); result: (B, N, T, H)."""
    tokens, seen, there = q.shape[2], kv.shape[1], at.under("compression")
    scale = fields["scale"] or 1 / math.sqrt(q.shape[-1])
    sinks = at.parameter("sinks", fields["heads"])[:, None]  # (N, 1)
    mixed = np.empty_like(q)  # (B, N, T, H)
    for token in range(tokens):
        near = kv[:, seen_from(seen - tokens + token, seen, causal=True, window=fields["window"])]  # (B, s, H)
        asked = q[:, :, token]  # (B, N, H)
        scores = [at.product("scores", asked, near.swapaxes(-1, -2))]  # (B, N, s)
        far = near[:, :0]
        if behind is not None:
            far, place = behind[0], behind[1][token]
            far = far[:, : (here[token] + 1) // fields["compression"]["rate"]] if place is None else far
            far = far if place is None else np.take_along_axis(far, place[..., None], axis=1)  # (B, c, H)
            scores.append(there.product("scores", asked, far.swapaxes(-1, -2)))  # (B, N, c)
        weights = attention_weights(np.concatenate(scores, axis=-1), scale=scale, sinks=sinks)  # (B, N, s + c + 1)
        at.tape.watch_rows(weights)
        mixed[:, :, token] = at.product("values", weights[..., : near.shape[1]], near)  # (B, N, s) x (B, s, H)
        if behind is not None:
            mixed[:, :, token] += there.product(
                "values", weights[..., near.shape[1] : -1], far
            )  # (B, N, c) x (B, c, H)
    return mixed


def _projected_back(fields: Fields, mixed: Array, d_model: int, at: Scope) -> Array:
    """Each group's numbers through a matrix of its own, and all of those through one. (B, N, T, H) -> (B, T, D)."""
    beside = join_heads(mixed)  # (B, T, N·H)
    batch, tokens, width = beside.shape
    groups = fields["out_groups"]
    parts = beside.reshape(batch, tokens, groups, width // groups).transpose(0, 2, 1, 3)  # (B, g, T, N·H/g)
    inner = at.each("output_down", parts, fields["out_rank"])  # (B, g, T, N·H/g) x (g, N·H/g, R)
    return at.linear("output_up", join_heads(inner), d_model, bias=False)  # (B, T, g·R) x (g·R, D)
