"""Disentangled attention (DeBERTa, arXiv 2006.03654, section 3.1 and Algorithm 1), as `DebertaModel` runs it."""

from __future__ import annotations

import math

import numpy as np

from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.grouped_query import join_heads, split_heads
from costcalc.reference.norms import norm
from costcalc.reference.on_scores import OfDistances
from costcalc.reference.scaled_dot_product import softmax
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope, Table


def rows_of_distances(fields: Fields, d_model: int, at: Scope) -> Table:
    """One row for each distance, normed where a model does so: (2·span, D)."""
    count = 2 * fields["span"]
    table = at.table("distances", count, d_model)
    if not fields["norm"]:
        return table
    rows = norm(fields["norm"], table.rows(np.arange(count)), at, "distances_norm")  # (2·span, D)
    return Table(table.tape, table.path, rows.astype(FLOAT), count)


def row_of(distances: Array, *, span: int, max_distance: int | None) -> Array:
    """The row of each distance, query position minus key position: delta of equation 3, whole numbers of any shape.

    Distances beyond the span share its last rows. With max_distance only half of the span is for single steps, and the
    rest grow as logarithms do (`make_log_bucket_position` of DeBERTa-v2).
    """
    distances = np.asarray(distances)
    if max_distance is not None:
        middle = span // 2
        steps = np.maximum(np.abs(distances), middle)
        growth = np.log(steps / middle) / math.log((max_distance - 1) / middle)
        grown = np.ceil(growth * (middle - 1)).astype(distances.dtype) + middle
        distances = np.where(np.abs(distances) <= middle, distances, np.sign(distances) * grown)
    found: Array = np.clip(distances + span, 0, 2 * span - 1)
    return found


def disentangled(
    fields: Fields,
    x: Array,
    at: Scope,
    *,
    positions: Fields,
    sight: Sight,
    added: OfDistances | None = None,
    name: str | None = None,
) -> Array:
    """Self-attention of T tokens that all see each other. x: (B, T, D) -> (B, T, D)."""
    del added, name
    if sight.table is None or sight.causal:
        raise ValueError("disentangled attention is for an encoder with rows of distances")
    tokens, width, heads = x.shape[1], x.shape[2], fields["heads"]
    q = split_heads(at.linear("q", x, width, bias=True), heads)  # (B, N, T, H)
    k = split_heads(at.linear("k", x, width, bias=fields["key_bias"]), heads)  # (B, N, T, H)
    v = split_heads(at.linear("v", x, width, bias=True), heads)  # (B, N, T, H)
    parts = 1 + bool(fields["to_position"]) + bool(fields["from_position"])
    scale = FLOAT(1 / math.sqrt(q.shape[-1] * parts))
    scores = at.product("scores", q, k.swapaxes(-1, -2))  # (B, N, T, T)
    span = min(tokens, fields["span"]) if fields["trimmed"] else fields["span"]
    rows = np.arange(fields["span"] - span, fields["span"] + span)  # (2·span)
    keys, queries = projected(fields, sight.table.rows(rows), at)  # (N, 2·span, H) each
    here = np.arange(tokens)  # (T)
    asked = row_of(here[:, None] - here, span=span, max_distance=positions["max_distance"])  # (T, T)
    if fields["to_position"] and keys is not None:
        of_rows = at.under("to_position").product("scores", q, keys.swapaxes(-1, -2))  # (B, N, T, 2·span)
        scores = scores + np.take_along_axis(of_rows, np.broadcast_to(asked, scores.shape), axis=-1)
    if fields["from_position"] and queries is not None:
        of_rows = at.under("from_position").product("scores", k, queries.swapaxes(-1, -2))  # (B, N, T, 2·span)
        # Key j takes the row of distance i - j for query i.
        taken = np.take_along_axis(of_rows, np.broadcast_to(asked.T, scores.shape), axis=-1)  # (B, N, j, i)
        scores = scores + taken.swapaxes(-1, -2)
    weights = softmax(scores * scale)  # (B, N, T, T)
    at.tape.watch_rows(weights)
    mixed = at.product("values", weights, v)  # (B, N, T, T) x (B, N, T, H)
    return at.linear("output", join_heads(mixed), width, bias=True)  # (B, T, D) x (D, D)


def projected(fields: Fields, rows: Array, at: Scope) -> tuple[Array | None, Array | None]:
    """Rows of distances as keys and as queries: (2·span, D) -> (N, 2·span, H) each, where they are asked for."""
    made: dict[str, Array | None] = {"k": None, "q": None}
    wanted = {"k": fields["to_position"], "q": fields["from_position"]}
    for name in made:
        bias = fields["key_bias"] if name == "k" else True
        if fields["weights"] == "shared":
            y = again(f"distance_{name}", name, rows, at, bias=bias)  # (2·span, D) x (D, D)
        elif wanted[name]:
            y = at.linear(f"distance_{name}", rows, rows.shape[-1], bias=bias)  # (2·span, D) x (D, D)
        else:
            continue
        made[name] = split_heads(y[None], fields["heads"])[0]  # (N, 2·span, H)
    return made["k"], made["q"]


def again(name: str, like: str, x: Array, at: Scope, *, bias: bool) -> Array:
    """A product of this name with the weight of another's. x: (..., D) -> (..., D)."""
    return at.linear_of(like, x, x.shape[-1], bias=bias, called=name)
