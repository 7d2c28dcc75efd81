"""Residuals by attention over blocks of layers (Inkling-2: `Inkling2BlockAttentionResidual`).

In a shape, n is how many sources there are: blocks of layers that are finished, and the stream of the present one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.block import Sublayers
from costcalc.reference.norms import rms_norm
from costcalc.reference.profiled import profiled_attention
from costcalc.reference.scaled_dot_product import softmax
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


def means(blocks: list[Array], stream: Array, at: Scope, *, queries: int = 1) -> list[Array]:
    """Of each query a weighted mean of what blocks left and of the stream, (B, T, D) each.

    blocks: (B, T, D) each; stream: (B, T, D). A score is divided by √D.
    """
    sources = rms_norm(np.stack([*blocks, stream], axis=2))  # (B, T, n, D)
    width = stream.shape[-1]
    scores = at.linear("query", sources, queries, bias=False).swapaxes(-1, -2)  # (B, T, queries, n)
    weights = softmax(scores * FLOAT(width**-0.5))  # (B, T, queries, n)
    found = at.product("means", weights, sources)  # (B, T, queries, n) x (B, T, n, D)
    return [found[:, :, query] for query in range(queries)]


def through_blocks(
    fields: Fields,
    x: Array,
    at: Scope,
    *,
    sight: Sight,
    messages: dict[str, Array] | None = None,
    told: Scope | None = None,
) -> Array:
    """A layer whose sublayers choose what they read. x: (B, T, D), the stream -> (B, T, D).

    messages: of a pass before this one, by what is made of them, (B, T, D) each; told: the place of their gates.

    What blocks left before is in `sight`, and this layer adds to it what it finishes.
    """
    how, parts, here = fields["block_residuals"], Sublayers(fields, at, sight, x), at.under("block_residuals")
    eps = fields["norm"]["eps"]
    if len(sight.blocks) != how["sources"]:
        raise ValueError(f"{at.path} reads {how['sources']} blocks, and {len(sight.blocks)} are finished")
    queries = 3 if how["inputs"] == "three" else 1
    is_first = how["sources"] == 0 and how["starts_block"]
    read = [x] * queries if is_first else means(sight.blocks, x, here.under("attention"), queries=queries)
    normed, made_of = _heard(how, read, parts, messages, told)
    some = {"positions": fields["positions"], "sight": sight, "made_of": made_of}
    y = parts.behind(profiled_attention(fields["attention"], normed, at.under("attention"), **some), "attention")
    if how["starts_block"]:
        sight.blocks.append(x)
    stream = y if how["starts_block"] else x + y  # (B, T, D)
    (read_again,) = means(sight.blocks, stream, here.under("feed_forward"))
    if messages is not None and told is not None:
        read_again = gated_message(
            how["loop"], read_again, messages["feed_forward"], told.under("feed_forward"), eps=eps
        )
    parts.stream = read_again
    fed = parts.feed(parts.normed(read_again, "feed_forward_norm"))  # (B, T, D)
    return stream + parts.behind(fed, "feed_forward")


def _heard(
    how: Fields, read: list[Array], parts: Sublayers, messages: dict[str, Array] | None, told: Scope | None
) -> tuple[Array, tuple[Array, Array] | None]:
    """What queries are made of, (B, T, D), and what keys and values are, where that is something else.

    Three inputs have a norm each; where messages alone tell them apart they share one.
    """
    eps = parts.fields["norm"]["eps"]
    apart = [read[0]] * 3 if len(read) == 1 else read
    if messages is not None and told is not None:
        names = ("q", "k", "v")
        apart = [
            gated_message(how["loop"], y, messages[n], told.under(n), eps=eps)
            for y, n in zip(apart, names, strict=True)
        ]
    elif len(read) == 1:
        return parts.normed(read[0], "attention_norm"), None
    if len(read) == 3:
        norms = ("attention_norm", "attention_keys_norm", "attention_values_norm")
        first, second, third = (parts.normed(y, name) for y, name in zip(apart, norms, strict=True))
        return first, (second, third)
    normed = parts.normed(np.stack(apart), "attention_norm")  # (3, B, T, D)
    return normed[0], (normed[1], normed[2])


def gated_message(loop: Fields, x: Array, message: Array, at: Scope, *, eps: float) -> Array:
    """Some of x forgotten, and some of a message added (`Inkling2LoopMessageGate`). (B, T, D) three times."""
    both = np.concatenate([rms_norm(x, eps=eps), rms_norm(message, eps=eps)], axis=-1)  # (B, T, 2D)
    inner = at.linear("down", both, loop["rank"], bias=False)  # (B, T, 2D) x (2D, rank)
    forget, add = (np.tanh(at.linear(name, inner, x.shape[-1], bias=False)) for name in ("forget", "add"))
    return (1 - forget) * x + add * message


def messages_of(loop: Fields, blocks: list[Array], stream: Array, at: Scope) -> dict[str, Array]:
    """What a pass left, for each of what the next one makes of it. blocks, stream: (B, T, D) each."""
    if len(blocks) + 1 != loop["sources"]:
        raise ValueError(f"{at.path} hears of {loop['sources']} sources, and there are {len(blocks) + 1}")
    found = means(blocks, stream, at, queries=4)
    return dict(zip(("q", "k", "v", "feed_forward"), found, strict=True))


def looped(
    layers: list[Fields], x: Array, places: list[Scope], *, sights: list[Sight], after: Callable[[Array], Array]
) -> Array:
    """Layers beside each other that run several times. x: (B, T, D) -> (B, T, D). after: told each layer's output.

    Each pass starts with the stream and the blocks from before the first, and hears what the pass before it left, but
    for its first block, which is the stream from before.
    """
    loop, blocks = layers[0]["block_residuals"]["loop"], sights[0].blocks
    start, known = x, len(blocks)
    for number in range(loop["passes"]):
        left, heard = blocks[known + 1 :], x
        if number:
            x = start
            del blocks[known:]
        for fields, place, sight in zip(layers, places, sights, strict=True):
            if number == 0:
                y = through_blocks(fields, x, place, sight=sight)
            else:
                told = place.under("messages")
                told = told if number == 1 else replace(told, lender=told.path)
                again = replace(place.under(f"pass_{number}"), lender=place.path)
                messages = messages_of(loop, left, heard, told)
                y = through_blocks(fields, x, again, sight=sight, messages=messages, told=told)
            x = after(y)
    if loop["passes"] == 1:
        for place in places:
            _held_alone(loop, place.under("messages"), x[:, :0])
    return x


def _held_alone(loop: Fields, at: Scope, nothing: Array) -> None:
    """Of a single pass nobody hears: gates and queries are held, and no rows meet them. nothing: (B, 0, D)."""
    messages = messages_of(loop, [nothing] * (loop["sources"] - 1), nothing, at)
    for name, message in messages.items():
        gated_message(loop, nothing, message, at.under(name), eps=1.0)
