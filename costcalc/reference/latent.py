"""Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1), in both of its forms.

What is kept of a token is one latent of R numbers for all heads, and beside it `rope_dim` numbers that carry the
position. Keys and values are products of the latent: either they are made, or their matrices are moved to the other
side of the scores' and of the values' products, which gives the same.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from costcalc.reference.activations import ACTIVATIONS
from costcalc.reference.arrays import Array, Fields
from costcalc.reference.grouped_query import join_heads, mixed_values, split_heads
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import norm
from costcalc.reference.on_scores import OfDistances
from costcalc.reference.positions import TURNED
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


def latent(
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
    del name  # no other layer looks at these latents
    turn, here = of_kind(TURNED, positions["kind"], "positions"), sight.start + np.arange(x.shape[1])  # (T)
    q = _queries(fields, x, at)  # (B, N, T, nope + rope)
    plain, carried = np.split(q, [fields["nope_dim"]], axis=-1)  # (B, N, T, nope), (B, N, T, rope)
    carried = turn(positions, carried, here)  # (B, N, T, rope)
    down = at.linear("kv_down", x, fields["kv_rank"] + fields["rope_dim"], bias=fields["bias"])  # (B, T, R + rope)
    small, turned = np.split(down, [fields["kv_rank"]], axis=-1)  # (B, T, R), (B, T, rope)
    small = norm(fields["norm"], small, at, "kv_norm")  # (B, T, R)
    seen = np.concatenate([small, turn(positions, turned, here)], axis=-1)  # (B, T, R + rope)
    if sight.request is not None:
        seen = sight.request.extended(at.named("latent_cache"), seen, window=None)  # (B, S, R + rope)
    form = sight.latent or ("absorbed" if sight.start else "expanded")
    run = of_kind(FORMS, form, "latent attention")
    mixed = run(fields, plain, carried, seen, at, sight=sight, added=added)  # (B, N, T, v)
    if fields["output_gate"] is not None:
        width = of_kind({"per_channel": fields["v_dim"], "per_head": 1}, fields["output_gate"], "output gate")
        activation = of_kind(ACTIVATIONS, fields["gate_activation"], "activation")
        gate = activation(at.linear("gate", x, fields["heads"] * width, bias=False))  # (B, T, N·v), or (B, T, N)
        mixed = mixed * split_heads(gate, fields["heads"])  # (B, N, T, v) * (B, N, T, v or 1)
    return at.linear("output", join_heads(mixed), x.shape[-1], bias=fields["out_bias"])  # (B, T, N·v) x (N·v, D)


def _queries(fields: Fields, x: Array, at: Scope) -> Array:
    """Of the input, or of a latent of it (equations 37 to 40). (B, T, D) -> (B, N, T, nope + rope)."""
    width = fields["heads"] * (fields["nope_dim"] + fields["rope_dim"])
    if fields["q_rank"] is None:
        return split_heads(at.linear("q", x, width, bias=False), fields["heads"])
    small = at.linear("q_down", x, fields["q_rank"], bias=fields["bias"])  # (B, T, D) x (D, R_q)
    small = norm(fields["norm"], small, at, "q_norm")  # (B, T, R_q)
    return split_heads(at.linear("q_up", small, width, bias=False), fields["heads"])


def expanded(
    fields: Fields, plain: Array, carried: Array, seen: Array, at: Scope, *, sight: Sight, added: OfDistances | None
) -> Array:
    """Keys and values of every head are made of all latents that are seen (equations 41 to 47).

    plain: (B, N, T, nope); carried: (B, N, T, rope); seen: (B, S, R + rope); result: (B, N, T, v).
    """
    heads = fields["heads"]
    small, turned = np.split(seen, [fields["kv_rank"]], axis=-1)  # (B, S, R), (B, S, rope)
    keys = split_heads(at.linear("k_up", small, heads * fields["nope_dim"], bias=False), heads)  # (B, N, S, nope)
    values = split_heads(at.linear("v_up", small, heads * fields["v_dim"], bias=False), heads)  # (B, N, S, v)
    same = np.broadcast_to(turned[:, None], (*keys.shape[:-1], fields["rope_dim"]))  # (B, N, S, rope)
    q, k = np.concatenate([plain, carried], axis=-1), np.concatenate([keys, same], axis=-1)  # (B, N, T or S, nope+rope)
    factors: dict[str, Any] = {"scale": _scale(fields), "softcap": fields["softcap"]}
    return mixed_values(q, k, values, at, **factors, causal=sight.causal, added=added)


def absorbed(
    fields: Fields, plain: Array, carried: Array, seen: Array, at: Scope, *, sight: Sight, added: OfDistances | None
) -> Array:
    """Heads look at the latents themselves: q · (c W) = (q Wᵀ) · c, and Σ w (c W) = (Σ w c) W (section 2.1.2).

    To the heads the latents are one key and one value for all. Shapes as in `expanded`.
    """
    rank, nope, v_dim = fields["kv_rank"], fields["nope_dim"], fields["v_dim"]
    asked = at.by_head("k_up", plain, rank, width=nope, back=True)  # (B, N, T, nope) x (nope, R)
    q, k = np.concatenate([asked, carried], axis=-1), seen[:, None]  # (B, N, T, R + rope), (B, 1, S, R + rope)
    factors: dict[str, Any] = {"scale": _scale(fields), "softcap": fields["softcap"]}
    mixed = mixed_values(q, k, k[..., :rank], at, **factors, causal=sight.causal, added=added)  # (B, N, T, R)
    return at.by_head("v_up", mixed, v_dim, width=v_dim, back=False)  # (B, N, T, R) x (R, v)


FORMS = {"expanded": expanded, "absorbed": absorbed}


def _scale(fields: Fields) -> float:
    """In both forms that of the keys that are made, or might be."""
    scale: float = fields["scale"] or 1 / math.sqrt(fields["nope_dim"] + fields["rope_dim"])
    return scale
