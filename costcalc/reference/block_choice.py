"""A choice of blocks of keys, as MiniMax-M3 makes it (`MiniMaxM3VLIndexer`).

Queries and keys of its own, far fewer and narrower than the attention's, score every key; a block of keys is as good as
its best. The attention then meets the best blocks only, so that its work no longer grows with the text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import norm
from costcalc.reference.positions import TURNED
from costcalc.reference.scaled_dot_product import softmax
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


class Chosen(NamedTuple):
    """scores: by new token, those of each head here for the keys up to it, (B, N_i, s). how: the fields."""

    how: Fields
    scores: list[Array]


def scored(how: Fields, x: Array, at: Scope, *, positions: Fields, sight: Sight) -> Chosen:
    """q·k of this part's queries with every key up to their own. x: (B, T, D), what the attention reads.

    The numbers of a head that turn are those of the attention's, as far as a head here has so many.
    """
    heads, head_dim = how["heads"], how["head_dim"]
    batch, tokens, _ = x.shape
    here = sight.start + np.arange(tokens)  # (T)
    turned = dict(positions)
    if turned.get("rotary_dim") is not None:
        turned["rotary_dim"] = min(turned["rotary_dim"], head_dim)
    turn = of_kind(TURNED, positions["kind"], "positions")
    q = at.linear("q", x, heads * head_dim, bias=False)  # (B, T, D) x (D, N_i·H_i)
    q = q.reshape(batch, tokens, heads, head_dim).transpose(0, 2, 1, 3)  # (B, N_i, T, H_i)
    k = at.linear("k", x, head_dim, bias=False)[:, None]  # (B, 1, T, H_i)
    q = turn(turned, norm(how["norm"], q, at, "q_norm"), here)  # (B, N_i, T, H_i)
    k = turn(turned, norm(how["norm"], k, at, "k_norm"), here)  # (B, 1, T, H_i)
    if sight.request is not None:
        k = sight.request.extended(at.named("k_cache"), k, window=None)  # (B, 1, S, H_i)
    seen = k.shape[2]
    keys = k[:, 0].swapaxes(-1, -2)  # (B, H_i, S)
    scores = []
    for token in range(tokens):
        up_to = keys[..., : seen - tokens + token + 1]  # (B, H_i, s)
        scores.append(at.product("scores", q[:, :, token], up_to))  # (B, N_i, H_i) x (B, H_i, s)
    return Chosen(how, scores)


def chosen_keys(chosen: Chosen, token: int) -> Array:
    """Which keys new token number `token` meets: (B, N_i, s') of places, s' the same for all.

    A block is as good as its best key (max-pooling); the latest `local` blocks are taken whatever their scores. Blocks
    begin at the text's first token.
    """
    how, scores = chosen.how, chosen.scores[token]
    leading, keys = scores.shape[:-1], scores.shape[-1]  # s keys
    block = how["block"]
    whole = -(-keys // block)  # blocks, the last one maybe not full
    padded = np.full((*leading, whole * block), -np.inf, FLOAT)  # (B, N_i, blocks·block)
    padded[..., :keys] = scores
    best = padded.reshape(*leading, whole, block).max(axis=-1)  # (B, N_i, blocks)
    best[..., max(whole - how["local"], 0) :] = np.inf
    taken = np.argsort(-best, axis=-1, kind="stable")[..., : min(how["blocks"], whole)]  # (B, N_i, blocks taken)
    taken = np.sort(taken, axis=-1)
    places = (taken[..., None] * block + np.arange(block)).reshape(*leading, -1)  # (B, N_i, blocks taken · block)
    own = keys - (whole - 1) * block  # keys of the query's own block, which stands last
    result: Array = places[..., : places.shape[-1] - (block - own)]
    return result


def mixed_of_chosen(q: Array, keys: Array, values: Array, at: Scope, *, chosen: Chosen, scale: float) -> Array:
    """The weighted mean of the chosen keys' values. q: (B, N, T, H); keys, values: (B, K, S, H); result: (B, N, T, H).

    Query head n reads key head n // (N / K), and meets what head n // (N / N_i) of the choice has chosen.
    """
    batch, heads, tokens, _ = q.shape
    choosing, kv_heads = chosen.how["heads"], keys.shape[1]
    of_choice = np.arange(heads) // (heads // choosing)  # (N)
    of_key = np.arange(heads) // (heads // kv_heads)  # (N)
    mixed = np.empty((*q.shape[:-1], values.shape[-1]), values.dtype)  # (B, N, T, v)
    text, head = np.arange(batch)[:, None, None], of_key[None, :, None]
    for token in range(tokens):
        places = chosen_keys(chosen, token)[:, of_choice]  # (B, N, s')
        met, valued = keys[text, head, places], values[text, head, places]  # (B, N, s', H), (B, N, s', v)
        scores = at.product("scores", q[:, :, token, None], met.swapaxes(-1, -2))  # (B, N, 1, s')
        weights = softmax(scores * FLOAT(scale))  # (B, N, 1, s')
        at.tape.watch_rows(weights)
        mixed[:, :, token] = at.product("values", weights, valued)[:, :, 0]  # (B, N, 1, s') x (B, N, s', v)
    return mixed
