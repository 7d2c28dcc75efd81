"""The bottom of a stack: rows of tables, positions, token types, and what makes D numbers of them."""

from __future__ import annotations

import numpy as np

from costcalc.reference.affine import affine
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import norm
from costcalc.reference.positions import ADDED
from costcalc.reference.tape import Scope, Table


def of_stack(fields: Fields, name: str) -> tuple[Fields, int]:
    """What is at the bottom of a stack, and its width D: its own, or the model's."""
    own = fields[name]
    return own["embedding"] or fields["embedding"], own["d_model"] or fields["d_model"]


def embedding_table(fields: Fields, at: Scope, rows: int) -> Table:
    """A vocabulary's table, (V, D), or (V, W) when it is factorised."""
    how, d_model = of_stack(fields, at.path)
    if how["own_rows"]:
        at.table("embedding_rows", how["own_rows"], how["width"] or d_model)  # no text here has such a token
    return at.table("embedding", rows, how["width"] or d_model)


def embedded(
    fields: Fields, tokens: Array, table: Table, at: Scope, *, positions: Fields, here: Array, token_types: Array
) -> Array:
    """One row for each token, scaled; plus its position's, its type's; normed; projected where W is not D.

    The projection of a factorised table (ALBERT, arXiv 1909.11942) comes after all these, or before them (OPT). Token
    types and the norm are BERT's (arXiv 1810.04805, figure 2). What enters the first layer may be shifted and scaled
    (`ZayaModel`). Of further tables every token has the first row (RoCBERT, LayoutLM, TAPAS without their inputs).
    tokens, token_types: (B, T); here: (T), the positions. Result: (B, T, D).
    """
    how, d_model = of_stack(fields, at.path)
    x = table.rows(tokens) * FLOAT(how["scale"])  # (B, T, D), or (B, T, W)
    more = further_rows(how, x, at, d_model=fields["d_model"])
    if how.get("neighbours"):
        x = np.concatenate([shifted(x, 1), x, shifted(x, -1)], axis=-1)  # (B, T, 3·W)
    if more["joined"]:
        x = np.concatenate([x, *more["joined"]], axis=-1)  # (B, T, W + what is joined)
    if how["width"] and how["project"] == "before":
        x = at.linear("embedding_projection", x, d_model, bias=how["bias"])  # (B, T, W) x (W, D)
    x = of_kind(ADDED, positions["kind"], "positions")(positions, x, here, at)  # (B, T, D)
    if how["token_types"]:
        x = x + at.table("token_types", how["token_types"], x.shape[-1]).rows(token_types)  # (B, T, D)
    for rows in more["added"]:
        x = x + rows  # (B, T, D) + (1, 1, D)
    if how["norm"]:
        x = norm(how["norm"], x, at, "embedding_norm")  # (B, T, D)
    if how["width"] and how["project"] == "after":
        x = at.linear("embedding_projection", x, d_model, bias=how["bias"])  # (B, T, W) x (W, D)
    return affine(x, at, "embedding") if how["affine"] else x  # (B, T, D)


def shifted(x: Array, by: int) -> Array:
    """The rows of the tokens `by` places further on, 0 beyond the text. (B, T, W) -> (B, T, W)."""
    gone = np.zeros_like(x[:, :1])  # (B, 1, W)
    return np.concatenate([x[:, 1:], gone] if by > 0 else [gone, x[:, :-1]], axis=1)


def further_rows(how: Fields, x: Array, at: Scope, *, d_model: int) -> dict[str, list[Array]]:
    """By the use of a further table, the row that each token has of it: the first. x: (B, T, W)."""
    found: dict[str, list[Array]] = {"added": [], "joined": [], "held": []}
    wide = d_model if how["project"] == "before" else x.shape[-1]
    for some in how["tables"]:
        table = at.under("tables").table(some["name"], some["rows"], some["width"] or wide)
        row = table.rows(np.zeros((1, 1), np.int64))  # (1, 1, width)
        shared = np.broadcast_to(row, (*x.shape[:2], row.shape[-1]))  # (B, T, width)
        of_kind(found, some["use"], "use of a table").append(shared)
    return found
