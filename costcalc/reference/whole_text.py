"""Attentions in which each token of a text meets some others: windows, blocks, and a few that see all."""

from __future__ import annotations

from typing import Any

import numpy as np

from costcalc.reference.arrays import Array, Fields
from costcalc.reference.kinds import of_kind
from costcalc.reference.met import Adds, around, check_both_ways, meet, projected, put_out, scale_of
from costcalc.reference.norms import norm
from costcalc.reference.on_scores import OfDistances
from costcalc.reference.positions import TURNED
from costcalc.reference.relative import relative_numbers
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


def _turned(positions: Fields, made: Array) -> Array:
    return of_kind(TURNED, positions["kind"], "positions")(positions, made, np.arange(made.shape[2]))


def _by_distance(added: OfDistances | None) -> Adds | None:
    return None if added is None else lambda token, places: added(places - token)


def sliding(
    fields: Fields,
    x: Array,
    at: Scope,
    *,
    positions: Fields,
    sight: Sight,
    added: OfDistances | None = None,
    name: str | None = None,
) -> Array:
    """A window around each token, and first ones that see all and are seen by all (arXiv 2004.05150, section 3.1).

    Those have projections of their own, for queries and for what they see. x: (B, T, D) -> (B, T, D).
    """
    del name
    check_both_ways(at, sight.causal)
    tokens, width = x.shape[1:]
    first = min(fields["first"], tokens)
    q, k, v = (projected(fields, x, at, name, d_model=width) for name in "qkv")  # (B, N, T, H) each
    q, k = _turned(positions, q), _turned(positions, k)
    seen = x if first else x[:, :0]
    rows = {"global_q": x[:, :first], "global_k": seen, "global_v": seen}
    own_q, own_k, own_v = (projected(fields, rows[name], at, name, d_model=width) for name in rows)
    own_q, own_k = _turned(positions, own_q), _turned(positions, own_k)
    more: dict[str, Any] = {"scale": scale_of(fields, q.shape[-1]), "adds": _by_distance(added)}

    def sees(token: int) -> list[int]:
        return [*range(first), *around(token, tokens, fields["window"], first=first)]

    of_all = meet(own_q, own_k, own_v, at, tokens=range(first), sees=lambda _: range(tokens), **more)  # (B, N, g, H)
    others = meet(q[:, :, first:], k, v, at, tokens=range(first, tokens), sees=sees, **more)  # (B, N, T - g, H)
    return put_out(fields, np.concatenate([of_all, others], axis=2), at, d_model=width)


def block_sparse(
    fields: Fields,
    x: Array,
    at: Scope,
    *,
    positions: Fields,
    sight: Sight,
    added: OfDistances | None = None,
    name: str | None = None,
) -> Array:
    """Blocks with their neighbours, the outer blocks and drawn ones (arXiv 2007.14062, section 2).

    A text of few blocks is attended to in full, as by `BigBirdModel`. x: (B, T, D) -> (B, T, D).
    """
    del name
    check_both_ways(at, sight.causal)
    tokens, width = x.shape[1:]
    q, k, v = (projected(fields, x, at, name, d_model=width) for name in "qkv")  # (B, N, T, H) each
    q, k = _turned(positions, q), _turned(positions, k)
    block, drawn = fields["block"], fields["random"]
    count = -(-tokens // block)
    seen_by = [sorted(_seen_blocks(number, count, drawn)) for number in range(count)]

    def sees(token: int) -> list[int]:
        if tokens <= (5 + 2 * drawn) * block:
            return list(range(tokens))
        starts = (other * block for other in seen_by[token // block])
        return [place for start in starts for place in range(start, min(start + block, tokens))]

    more: dict[str, Any] = {"scale": scale_of(fields, q.shape[-1]), "adds": _by_distance(added)}
    return put_out(fields, meet(q, k, v, at, tokens=range(tokens), sees=sees, **more), at, d_model=width)


def _seen_blocks(number: int, count: int, drawn: int) -> set[int]:
    """Of so many blocks those that one sees; those that are drawn are none of the others."""
    outer = {0, count - 1}
    if number in outer:
        return set(range(count))
    near = {number - 1, number, number + 1}
    left = [other for other in range(1, count - 1) if other not in near]
    return outer | near | set(np.random.default_rng(number).permutation(left)[:drawn].astype(int).tolist())


def local(
    fields: Fields,
    x: Array,
    at: Scope,
    *,
    positions: Fields,
    sight: Sight,
    added: OfDistances | None = None,
    name: str | None = None,
) -> Array:
    """A window around each token, and sums of blocks for all (arXiv 2112.07916, sections 3.1 and 3.2).

    x: (B, T, D) -> (B, T, D).
    """
    del name
    check_both_ways(at, sight.causal)
    tokens, width = x.shape[1:]
    sums, ids = _sums(fields, x, at)  # (B, G, D), (T)
    count = sums.shape[1]
    q = _turned(positions, projected(fields, x, at, "q", d_model=width))  # (B, N, T, H)
    with_sums = np.concatenate([sums, x], axis=1)  # (B, G + T, D)
    k, v = (projected(fields, with_sums, at, name, d_model=width) for name in "kv")  # (B, N, G + T, H) each
    k = np.concatenate([k[:, :, :count], _turned(positions, k[:, :, count:])], axis=2)

    def sees(token: int) -> list[int]:
        return [*range(count), *(count + place for place in around(token, tokens, fields["window"]))]

    def adds(token: int, places: Array) -> Array:
        near = np.zeros((fields["heads"], len(places) - count), x.dtype) if added is None else None
        near = added(places[count:] - count - token) if added is not None else near  # (N, s - G)
        far = np.zeros((fields["heads"], count), x.dtype)  # (N, G)
        if sight.sum_table is not None and count:
            far = relative_numbers(positions, sight.sum_table, np.arange(count) - ids[token], causal=False)
        return np.concatenate([far, near], axis=1)  # (N, s)

    some: dict[str, Any] = {"scale": scale_of(fields, q.shape[-1]), "adds": adds}
    return put_out(fields, meet(q, k, v, at, tokens=range(tokens), sees=sees, **some), at, d_model=width)


def _sums(fields: Fields, x: Array, at: Scope) -> tuple[Array, Array]:
    """Sums of whole blocks of the text, normed, and which of them each token is in. (B, T, D) -> (B, G, D), (T).

    Tokens behind the last whole block are in it.
    """
    if fields["summed"] is None:
        return x[:, :0], np.zeros(x.shape[1], np.int64)
    count = x.shape[1] // fields["summed"]
    ids = np.minimum(np.arange(x.shape[1]) // fields["summed"], max(count - 1, 0))  # (T)
    sums = np.zeros((x.shape[0], count, x.shape[2]), x.dtype)  # (B, G, D)
    if count:
        once = at.elementwise("sums", x, np.ones_like(x))  # (B, T, D)
        for block in range(count):
            sums[:, block] = once[:, ids == block].sum(axis=1)  # (B, D)
    return norm(fields["norm"], sums, at, "sums_norm"), ids


def global_local(
    fields: Fields,
    x: Array,
    at: Scope,
    *,
    positions: Fields,
    sight: Sight,
    added: OfDistances | None = None,
    name: str | None = None,
) -> Array:
    """Tokens of a block with one another and with G rows before the text, which see all (arXiv 2208.04347, section 3).

    Blocks of every second layer may begin half a block earlier. x: (B, G + T, D) -> (B, G + T, D).
    """
    del name
    check_both_ways(at, sight.causal)
    more, rows, width, block = sight.global_tokens, *x.shape[1:], fields["block"]
    q, k, v = (projected(fields, x, at, name, d_model=width) for name in "qkv")  # (B, N, G + T, H) each
    q, k = (np.concatenate([y[:, :, :more], _turned(positions, y[:, :, more:])], axis=2) for y in (q, k))
    ahead = block - block // 2 if fields["staggered"] else 0

    def sees(row: int) -> list[int]:
        if row < more:
            return list(range(rows))
        start = max((row - more + ahead) // block * block - ahead, 0)
        end = min(((row - more + ahead) // block + 1) * block - ahead, rows - more)
        return [*range(more), *range(more + start, more + end)]

    def adds(row: int, places: Array) -> Array:
        made = np.zeros((fields["heads"], len(places)), x.dtype)  # (N, s)
        if added is not None and row >= more:
            made[:, more:] = added(places[more:] - row)
        return made

    some: dict[str, Any] = {"scale": scale_of(fields, q.shape[-1]), "adds": adds}
    return put_out(fields, meet(q, k, v, at, tokens=range(rows), sees=sees, **some), at, d_model=width)
