"""Entities beside words (LUKE, arXiv 2010.01057): held, and of no use to a text without any."""

from __future__ import annotations

import numpy as np

from costcalc.reference.arrays import FLOAT, Fields
from costcalc.reference.norms import norm
from costcalc.reference.tape import Scope


def hold_entities(how: Fields, root: Scope, *, d_model: int) -> None:
    """Run what a model has for entities on none of them: tables, a projection, a norm, and a head (section 3.1)."""
    at, some = root.under("entities"), np.zeros(0, np.int64)
    rows = at.table("embedding", how["rows"], how["width"])
    x = rows.rows(some)  # (0, W)
    if how["width"] != d_model:
        x = at.linear("projection", x, d_model, bias=False)  # (0, W) x (W, D)
    x = x + at.table("positions", how["length"], d_model).rows(some)  # (0, D)
    x = x + at.table("token_types", how["token_types"], d_model).rows(some)  # (0, D)
    x = norm(how["norm"], x, at, "embedding_norm").astype(FLOAT)  # (0, D)
    if how["predicts"]:
        head = root.under("entity_head")
        y = norm(how["norm"], head.linear("transform", x, how["width"], bias=True), head, "norm")  # (0, W)
        table = head.table("head", how["rows"], how["width"]) if how["predicts"] == "own" else rows
        table.product(head.named("head"), y)  # (0, W) x (W, entities)
        head.parameter("head_bias", how["rows"])
