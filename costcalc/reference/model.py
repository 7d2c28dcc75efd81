"""The whole pass: tokens to logits, layer by layer, from an architecture's plain fields.

It leans on nothing of the architecture but its fields: layers are expanded and sizes derived here once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.block import block
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import norm
from costcalc.reference.positions import ADDED
from costcalc.reference.request import Request
from costcalc.reference.scaled_dot_product import soft_cap
from costcalc.reference.tape import Scope, Table, Tape

OnLayer = Callable[[int, int, Array], Array]
"""Told, after each layer, how many are done, how many there are, and its output; what it gives goes on: (B, T, D)."""


def forward(
    fields: Fields,
    tokens: Array,
    *,
    tape: Tape,
    request: Request | None = None,
    logits: str = "all",
    on_layer: OnLayer | None = None,
) -> Array:
    """Logits of new tokens, after what `request` holds; the request then holds them too.

    fields: `Architecture.model_dump()`. tokens: (B, T) of row numbers. logits: "all", or "last" for the last token's
    only. Result: (B, T, V) or (B, 1, V), float32. Frequencies of RoPE are plain ones, of theta: those that are rescaled
    (YaRN, Llama-3.1) give other logits of the same shape. Raises TypeError for what are no fields or no row numbers,
    ValueError for another `logits`, or for a request that cannot be or holds another batch, IndexError for a row that
    no table has, and `NoReferenceError` for a kind without a pass. If anything is raised, `request` is as it was.
    """
    if logits not in ("all", "last"):
        raise ValueError(f'logits are "all" or "last", not {logits!r}')
    tokens = np.asarray(tokens)
    if not isinstance(fields, dict) or tokens.ndim != 2 or not np.issubdtype(tokens.dtype, np.integer):
        given = f"{type(fields).__name__} and {tokens.dtype} {tokens.shape}"
        raise TypeError(f"the fields of a model, model.model_dump(), and whole numbers (B, T) are needed, not {given}")
    request = Request() if request is None else request
    request.check(tokens.shape[1])
    before = dict(request.arrays)
    try:
        return _forward(fields, tokens, tape, request, logits, on_layer)
    except BaseException:  # an interrupt too: half of the layers would hold more tokens than the others
        request.arrays = before
        raise


def _forward(
    fields: Fields, tokens: Array, tape: Tape, request: Request, logits: str, on_layer: OnLayer | None
) -> Array:
    root, at = Scope(tape), Scope(tape, "decoder")
    table = embedding_table(fields, at)
    x = embedded(fields, tokens, table, at)  # (B, T, D)
    x = stack(fields["decoder"], x, at, request=request, on_layer=on_layer)  # (B, T, D)
    if logits == "last":
        x = x[:, -1:]  # (B, 1, D)
    result = head(fields, x, table, root)  # (B, T, V)
    for path, held in request.arrays.items():
        tape.cached[path] = held.size
    request.past += tokens.shape[1] if request.kept is None else request.kept
    request.kept = None
    return result


def embedding_table(fields: Fields, at: Scope) -> Table:
    """The vocabulary's table, (V, D), or (V, W) when it is factorised."""
    return at.table("embedding", fields["vocab_size"], fields["embedding"]["width"] or fields["d_model"])


def embedded(fields: Fields, tokens: Array, table: Table, at: Scope) -> Array:
    """One row for each token, scaled, and projected from W to D when it is narrower (ALBERT, arXiv 1909.11942).

    tokens: (B, T). Result: (B, T, D).
    """
    x = table.rows(tokens) * FLOAT(fields["embedding"]["scale"])  # (B, T, D), or (B, T, W)
    if fields["embedding"]["width"]:
        bias = fields["embedding"]["bias"]
        x = at.linear("embedding_projection", x, fields["d_model"], bias=bias)  # (B, T, W) x (W, D)
    return x


def stack(fields: Fields, x: Array, at: Scope, *, request: Request, on_layer: OnLayer | None) -> Array:
    """Added positions, the layers in order, and the norm above them. x: (B, T, D) -> (B, T, D)."""
    here = request.past + np.arange(x.shape[1])  # (T)
    x = of_kind(ADDED, fields["positions"]["kind"], "positions")(fields["positions"], x, here, at)  # (B, T, D)
    layers = list(expanded(fields["layers"]))
    for index, layer in enumerate(layers):
        x = block(layer, x, at.under(f"layers.{index}"), request=request)  # (B, T, D)
        if on_layer is not None:
            x = on_layer(index + 1, len(layers), x)  # (B, T, D)
    above = fields["final_norm"]
    if above is None:  # a layer that ends in a norm needs none above it
        above = layers[-1]["norms"] != "post"
    return norm(fields["norm"], x, at, "final_norm") if above else x


def expanded(entries: list[Fields]) -> Iterator[Fields]:
    """Every single layer in order: `repeat` and `pattern` multiplied out."""
    for entry in entries:
        for _ in range(entry["repeat"]):
            if "pattern" in entry:
                yield from expanded(entry["pattern"])
            else:
                yield entry


def head(fields: Fields, x: Array, embedding: Table, root: Scope) -> Array:
    """One logit for each row of the vocabulary, from the embedding's table when tied (arXiv 1608.05859).

    x: (B, T, D) -> (B, T, V).
    """
    table = embedding
    if not fields["tie_embeddings"]:
        table = root.table("head", fields["vocab_size"], fields["d_model"])
    elif fields["embedding"]["width"]:
        x = root.under("head").linear("projection", x, fields["embedding"]["width"], bias=False)  # (B, T, D) x (D, W)
    logits = table.product("head", x)  # (B, T, D) x (D, V)
    if fields["head"]["bias"]:
        logits = logits + root.parameter("head_bias", fields["vocab_size"])  # (B, T, V) + (V)
    return soft_cap(logits, fields["head"]["softcap"])
