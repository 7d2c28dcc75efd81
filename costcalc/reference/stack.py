"""A stack of layers, in order, and the norm above them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from costcalc.reference.altup import gathered, spread
from costcalc.reference.arrays import Array, Fields
from costcalc.reference.block_residuals import looped, means
from costcalc.reference.disentangled import rows_of_distances
from costcalc.reference.hyper_connections import copied
from costcalc.reference.hyper_connections import gathered as gathered_parts
from costcalc.reference.layer import layer
from costcalc.reference.norms import norm
from costcalc.reference.per_layer_input import own_numbers
from costcalc.reference.recurrent_depth import between
from costcalc.reference.relative import relative_table
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope, Table

AfterLayer = Callable[[int, Array], Array]
"""Told, after each layer, its number from 1 on and its output; what it gives goes on: (B, T, D), or of A states of
AltUp (A·B, T, D)."""


def stack(fields: Fields, tokens: Array, x: Array, at: Scope, *, sight: Sight, after: AfterLayer) -> Array:
    """All layers, and the norm above them. tokens: (B, T); x: (B, T, D), made of them; result: (B, T, D)."""
    layers, sight = list(expanded(fields["layers"])), replace(sight, embeddings=x, tokens=tokens)
    own = None
    if fields["per_layer_input"]:
        how = fields["per_layer_input"]
        own = own_numbers(how, tokens, x, at, norm_of=fields["norm"], layers=len(layers))  # (B, T, L, W)
    if fields.get("hyper_connections"):
        x = copied(fields["hyper_connections"], x)  # (A, B, T, D)
    if fields["altup"]:
        x = spread(fields["altup"], x, at.under("altup"))  # (A, B, T, D)
    x, beside = _with_more(fields, x, at)  # (B, G + T, D)
    sight = replace(sight, global_tokens=beside)
    turns = between(fields, x, at)
    ran, held = 0, list(places(layers, at))
    for start, end in runs(layers):
        sights = [replace(sight, layer=index, layers=len(layers)) for index in range(start, end)]
        if end - start > 1 or loop_of(layers[start]):
            numbered = partial(_numbered, after, itertools.count(ran + 1))
            x = looped(layers[start:end], x, held[start:end], sights=sights, after=numbered)
            ran += (end - start) * layers[start]["block_residuals"]["loop"]["passes"]
            continue
        x = turns.entered(start, x)  # (B, T, D)
        its_own = None if own is None else own[:, :, start]  # (B, T, W)
        y = layer(layers[start], x, held[start], sight=sights[0], around=fields, own=its_own)  # (B, T, D), (A, B, T, D)
        ran += 1
        x = after(ran, y.reshape(prod(y.shape[:-2]), *y.shape[-2:])).reshape(y.shape)
        x = turns.left(start, x)  # (B, T, D)
    if fields["altup"]:
        x = gathered(fields["altup"], x, at.under("altup"))  # (B, T, D)
    if fields.get("hyper_connections"):
        there = at.under("hyper_connections.above")
        x = gathered_parts(fields["hyper_connections"], x, there, eps=fields["norm"]["eps"])  # (B, T, D)
    x = x[:, beside:]  # what went beside the text ends here
    if fields.get("residual_sources"):
        if len(sight.blocks) + 1 != fields["residual_sources"]:
            raise ValueError(f"{len(sight.blocks)} blocks are finished, not {fields['residual_sources']} less one")
        (x,) = means(sight.blocks, x, at.under("block_residuals.above"))  # (B, T, D)
    above = fields["final_norm"]
    if above is None:  # a layer that ends in a norm needs none above it
        above = layers[-1]["norms"] != "post"
    return norm(fields["norm"], x, at, "final_norm") if above else x


def _with_more(fields: Fields, x: Array, at: Scope) -> tuple[Array, int]:
    """Learned rows before those of the text, and how many (Pegasus-X, arXiv 2208.04347, section 3).

    (B, T, D) -> (B, G + T, D); without a text there are no rows.
    """
    count = fields["global_tokens"]
    if not count:
        return x, 0
    learned = at.table("global_tokens", count, x.shape[-1]).rows(np.arange(count if x.shape[1] else 0))  # (G, D)
    return np.concatenate([np.broadcast_to(learned, (len(x), *learned.shape)), x], axis=1), count


def _numbered(after: AfterLayer, counted: Iterator[int], y: Array) -> Array:
    """`after`, of a layer whose number is the next one."""
    return after(next(counted), y)


def loop_of(fields: Fields) -> Fields | None:
    """What says that a layer runs several times, if anything does."""
    residuals = fields.get("block_residuals")
    loop: Fields | None = residuals["loop"] if residuals else None
    return loop


def runs(layers: list[Fields]) -> Iterator[tuple[int, int]]:
    """The layers one by one, but those beside each other that run several times together: first and behind the last."""
    start = 0
    while start < len(layers):
        end = start + 1
        while loop_of(layers[start]) and end < len(layers) and loop_of(layers[end]):
            end += 1
        yield start, end
        start = end


def expanded(entries: list[Fields]) -> Iterator[Fields]:
    """Every single layer in order: `repeat` and `pattern` multiplied out."""
    for entry in entries:
        for _ in range(entry["repeat"]):
            if "pattern" in entry:
                yield from expanded(entry["pattern"])
            else:
                yield entry


def places(layers: list[Fields], at: Scope) -> Iterator[Scope]:
    """Where each layer stands; of the layers of one entry that share their weights, the first one holds them."""
    holders: dict[int, str] = {}
    for index, some in enumerate(layers):
        place = at.under(f"layers.{index}")
        if some["share_weights"]:
            holder = holders.setdefault(id(some), place.path)  # `expanded` gives one entry again and again
            place = place if holder == place.path else Scope(place.tape, place.path, lender=holder)
        yield place


def shared_positions(fields: Fields, at: Scope, *, d_model: int) -> Table | None:
    """The one table of relative positions for all layers of a stack, which have the same number of heads, if any.

    Or one of rows for distances, as wide as the model (DeBERTa).
    """
    positions = fields["positions"]
    if positions["kind"] == "relative_rows":
        return rows_of_distances(positions, d_model, at)
    if positions["kind"] not in ("relative", "learned_and_relative") or positions.get("per_layer"):
        return None
    using = (layer for layer in expanded(fields["layers"]) if layer["attention"] and layer["positions"] == positions)
    heads = {layer["attention"]["heads"] for layer in using}
    if len(heads) != 1:
        raise ValueError(f"one table of relative positions is for layers of one number of heads, not {sorted(heads)}")
    return relative_table(positions, heads.pop(), at)


def shared_sums(fields: Fields, at: Scope) -> Table | None:
    """The table of relative positions of sums of blocks, one for all layers of a stack, if there is one (LongT5)."""
    positions = fields["positions"]
    if positions["kind"] != "relative" or not positions["of_sums"]:
        return None
    heads = {layer["attention"]["heads"] for layer in expanded(fields["layers"]) if layer["attention"]}
    return at.table("sum_positions", positions["buckets"], heads.pop())
