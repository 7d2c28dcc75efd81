"""N-gram attention and its streams (ProphetNet, arXiv 2001.04063, section 3.2; as `ProphetNetDecoder` has them).

The streams of a text stand behind each other where texts do: (streams·B, T, D), the main one first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.grouped_query import join_heads, split_heads
from costcalc.reference.norms import norm
from costcalc.reference.on_scores import OfDistances
from costcalc.reference.relative import relative_bucket
from costcalc.reference.scaled_dot_product import attention_weights
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope, Table


def streams_ahead(layers: list[Fields]) -> int:
    """How many streams of a text guess ahead; 0 where no layer has any."""
    kinds = [layer["attention"] for layer in layers if layer["attention"] and layer["attention"]["kind"] == "ngram"]
    return kinds[0]["streams"] if kinds else 0


def embedded_streams(
    fields: Fields, tokens: Array, table: Table, at: Scope, *, positions: Fields, here: Array, streams: int
) -> Array:
    """The rows of the tokens, and of each stream ahead a row of its own, with that of the next position, for all.

    tokens: (B, T); here: (T). Result: ((1 + streams)·B, T, D).
    """
    how = fields["embedding"]
    x = table.rows(tokens) * FLOAT(how["scale"])  # (B, T, D)
    batch, length, width = x.shape
    places = at.table("positions", positions["length"], width)
    main = x + places.rows(here + positions["offset"])  # (B, T, D) + (T, D)
    last = positions["length"] - 1
    following = places.rows(np.minimum(here + positions["offset"] + 1, last))  # (T, D)
    own = at.table("ngram_embedding", streams, width).rows((np.arange(streams) - 1) % streams)  # (n, D)
    ahead = own[:, None, None] + following  # (n, 1, T, D)
    ahead = np.broadcast_to(ahead, (streams, batch, length, width))  # (n, B, T, D)
    rows = np.concatenate([main[None], ahead]).reshape(-1, length, width)  # ((1 + n)·B, T, D)
    return norm(how["norm"], rows, at, "embedding_norm") if how["norm"] else rows


def of_streams_ahead(x: Array, streams: int) -> Array:
    """What a head reads: all streams but the main one. ((1 + n)·B, T, D) -> (n·B, T, D)."""
    return x[len(x) // (1 + streams) :]


def ngram_attention(
    fields: Fields,
    x: Array,
    at: Scope,
    *,
    positions: Fields,
    sight: Sight,
    added: OfDistances | None = None,
    name: str | None = None,
) -> Array:
    """Each stream's T new tokens over the main one's and their own. x: ((1 + n)·B, T, D) -> the same."""
    del positions, added, name  # positions are in the embeddings, and in the buckets below
    heads, streams, width = fields["heads"], fields["streams"], x.shape[-1]
    head_dim, batch, tokens = fields["head_dim"] or width // heads, len(x) // (1 + streams), x.shape[1]
    made = (at.linear(which, x, heads * head_dim, bias=fields["bias"]) for which in ("q", "k", "v"))
    q, k, v = (split_heads(each, heads) for each in made)  # ((1 + n)·B, N, T, H) each
    shifts = at.linear("relative", x, fields["buckets"] * heads, bias=fields["bias"])  # ((1 + n)·B, T, buckets·N)
    shifts = shifts.reshape(len(x), tokens, fields["buckets"], heads)
    keys, values = k[:batch], v[:batch]  # (B, N, T, H)
    if sight.request is not None:
        keys = sight.request.extended(at.named("k_cache"), keys, window=None)  # (B, N, S, H)
        values = sight.request.extended(at.named("v_cache"), values, window=None)
    before = keys.shape[2] - tokens
    mixed = np.empty_like(q)  # ((1 + n)·B, N, T, H)
    for stream in range(1 + streams):
        rows, place = slice(stream * batch, (stream + 1) * batch), at if stream == 0 else at.under("ahead")
        for token in range(tokens):
            here = before + token
            count = here + 1 if stream == 0 else max(here + 2 - stream, 1)  # of the main stream
            met, weighed, distances = keys[:, :, :count], values[:, :, :count], np.arange(count) - here
            if stream:
                own = slice(token, token + 1)
                met = np.concatenate([met, k[rows, :, own]], axis=2)  # (B, N, s + 1, H)
                weighed = np.concatenate([weighed, v[rows, :, own]], axis=2)
                distances = np.append(distances - 1, 0)  # from the position that is guessed
            found = relative_bucket(
                distances, buckets=fields["buckets"], max_distance=fields["max_distance"], causal=True
            )
            shift = shifts[rows, token][:, found].transpose(0, 2, 1)  # (B, N, s)
            how: dict[str, Any] = {"scale": fields["scale"] or head_dim**-0.5, "added": shift[:, :, None]}
            scores = place.product("scores", q[rows, :, token, None], met.swapaxes(-1, -2))  # (B, N, 1, s)
            weights = attention_weights(scores, **how)
            at.tape.watch_rows(weights)
            mixed[rows, :, token] = place.product("values", weights, weighed)[:, :, 0]  # (B, N, 1, s) x (B, N, s, H)
    return at.linear("output", join_heads(mixed), width, bias=fields["out_bias"])  # (.., T, N·H) x (N·H, D)
