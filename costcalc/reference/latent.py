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
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.grouped_query import join_heads, mixed_values, split_heads
from costcalc.reference.indexer import choices, mixed_of_chosen
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
    small_q, read = _query_latent(fields, x, at)  # (B, T, R_q), (B, T, R_q) or twice as wide; None and x
    width = fields["heads"] * (fields["nope_dim"] + fields["rope_dim"])
    name_q = "q" if small_q is None else "q_up"
    q = split_heads(at.linear(name_q, read, width, bias=False), fields["heads"])  # (B, N, T, nope + rope)
    plain, carried = np.split(q, [fields["nope_dim"]], axis=-1)  # (B, N, T, nope), (B, N, T, rope)
    carried = turn(positions, carried, here)  # (B, N, T, rope)
    down = at.linear("kv_down", x, fields["kv_rank"] + fields["rope_dim"], bias=fields["bias"])  # (B, T, R + rope)
    small, turned = np.split(down, [fields["kv_rank"]], axis=-1)  # (B, T, R), (B, T, rope)
    small = norm(fields["norm"], small, at, "kv_norm") * FLOAT(fields["latent_scale"])  # (B, T, R)
    if fields["rope_norm"]:
        turned = norm(fields["norm"], turned, at, "rope_norm")  # (B, T, rope)
    seen, window = np.concatenate([small, turn(positions, turned, here)], axis=-1), fields["window"]  # (B, T, R + rope)
    if sight.request is not None:
        seen = sight.request.extended(at.named("latent_cache"), seen, window=window)  # (B, S, R + rope)
    if window is not None and sight.causal:
        seen = seen[:, -(window - 1 + x.shape[1]) :]  # no new token sees an earlier one
    chosen = choices(fields, x, small_q, at, positions=positions, sight=sight)
    form = sight.latent or ("absorbed" if sight.start else "expanded")
    factors: dict[str, Any] = {"scale": _scale(fields), "softcap": fields["softcap"]}
    factors |= {"sinks": at.parameter("sinks", fields["heads"]) if fields["sinks"] else None}
    sees = {"causal": sight.causal, "added": added, "window": window, "start": sight.start}
    factors |= sees if chosen is None else {"chosen": chosen}
    mixed = of_kind(FORMS, form, "latent attention")(fields, plain, carried, seen, at, factors=factors)  # (B, N, T, v)
    if fields["output_gate"] is not None:
        mixed = mixed * _gate(fields, of_kind({"input": x, "query_latent": read}, fields["gate_reads"], "gate"), at)
    return at.linear("output", join_heads(mixed), x.shape[-1], bias=fields["out_bias"])  # (B, T, N·v) x (N·v, D)


def _query_latent(fields: Fields, x: Array, at: Scope) -> tuple[Array | None, Array]:
    """The latent of queries, normed (equations 37 and 38), and what they are made of: that, "both" that and what it was
    before the norm (A.X-K2), or the input. (B, T, D) -> (B, T, R_q) or None, and (B, T, R_q), (B, T, 2·R_q) or x.
    """
    if fields["q_rank"] is None:
        return None, x
    raw = at.linear("q_down", x, fields["q_rank"], bias=fields["bias"])  # (B, T, D) x (D, R_q)
    small = norm(fields["norm"], raw, at, "q_norm")  # (B, T, R_q)
    is_joined = of_kind({"normed": False, "both": True}, fields["query_reads"], "latent of queries")
    return small, np.concatenate([small, raw], axis=-1) if is_joined else small


def _gate(fields: Fields, x: Array, at: Scope) -> Array:
    """One number for each of the heads' outputs, or for each head. (B, T, any) -> (B, N, T, v or 1)."""
    width = of_kind({"per_channel": fields["v_dim"], "per_head": 1}, fields["output_gate"], "output gate")
    activation = of_kind(ACTIVATIONS, fields["gate_activation"], "activation")
    return split_heads(activation(at.linear("gate", x, fields["heads"] * width, bias=False)), fields["heads"])


def expanded(fields: Fields, plain: Array, carried: Array, seen: Array, at: Scope, *, factors: Fields) -> Array:
    """Keys and values of every head are made of all latents that are seen (equations 41 to 47).

    plain: (B, N, T, nope); carried: (B, N, T, rope); seen: (B, S, R + rope); result: (B, N, T, v). factors: of scores,
    and who sees whom.
    """
    heads = fields["heads"]
    small, turned = np.split(seen, [fields["kv_rank"]], axis=-1)  # (B, S, R), (B, S, rope)
    keys = split_heads(at.linear("k_up", small, heads * fields["nope_dim"], bias=False), heads)  # (B, N, S, nope)
    values = split_heads(at.linear("v_up", small, heads * fields["v_dim"], bias=False), heads)  # (B, N, S, v)
    same = np.broadcast_to(turned[:, None], (*keys.shape[:-1], fields["rope_dim"]))  # (B, N, S, rope)
    q, k = np.concatenate([plain, carried], axis=-1), np.concatenate([keys, same], axis=-1)  # (B, N, T or S, nope+rope)
    return _mixed(q, k, values, at, factors)


def absorbed(fields: Fields, plain: Array, carried: Array, seen: Array, at: Scope, *, factors: Fields) -> Array:
    """Heads look at the latents themselves: q · (c W) = (q Wᵀ) · c, and Σ w (c W) = (Σ w c) W (section 2.1.2).

    To the heads the latents are one key and one value for all. Shapes as in `expanded`.
    """
    rank, nope, v_dim = fields["kv_rank"], fields["nope_dim"], fields["v_dim"]
    asked = at.by_head("k_up", plain, rank, width=nope, back=True)  # (B, N, T, nope) x (nope, R)
    q, k = np.concatenate([asked, carried], axis=-1), seen[:, None]  # (B, N, T, R + rope), (B, 1, S, R + rope)
    mixed = _mixed(q, k, k[..., :rank], at, factors)  # (B, N, T, R)
    return at.by_head("v_up", mixed, v_dim, width=v_dim, back=False)  # (B, N, T, R) x (R, v)


def _mixed(q: Array, keys: Array, values: Array, at: Scope, factors: Fields) -> Array:
    """Over all keys that a query may see, or those that are chosen for it."""
    return (mixed_of_chosen if "chosen" in factors else mixed_values)(q, keys, values, at, **factors)


FORMS = {"expanded": expanded, "absorbed": absorbed}


def _scale(fields: Fields) -> float:
    """In both forms that of the keys that are made, or might be."""
    scale: float = fields["scale"] or 1 / math.sqrt(fields["nope_dim"] + fields["rope_dim"])
    return scale
