"""What each kind of positions adds to the scores of self-attention, one number for each head and key."""

from __future__ import annotations

from collections.abc import Callable

from costcalc.reference.alibi import alibi_numbers
from costcalc.reference.arrays import Array, Fields
from costcalc.reference.relative import relative_numbers, relative_table
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope

OfDistances = Callable[[Array], Array]
"""Distances of the keys that a query sees, key position minus its own, (s) -> what is added to its scores, (N, s)."""


def nothing(fields: Fields, heads: int, at: Scope, sight: Sight) -> OfDistances | None:
    """Scores as they are."""
    del fields, heads, at, sight
    return None


def relative(fields: Fields, heads: int, at: Scope, sight: Sight) -> OfDistances:
    """Of T5: from the stack's table, or from the layer's own (UMT5)."""
    table = relative_table(fields, heads, at) if fields.get("per_layer") or sight.table is None else sight.table
    return lambda distances: relative_numbers(fields, table, distances, causal=sight.causal)


def alibi(fields: Fields, heads: int, at: Scope, sight: Sight) -> OfDistances:
    """Of ALiBi."""
    del at, sight
    steep = {"max_bias": fields["max_bias"], "slope_scale": fields["slope_scale"]}
    return lambda distances: alibi_numbers(heads, distances, **steep)


ON_SCORES: dict[str, Callable[[Fields, int, Scope, Sight], OfDistances | None]] = {
    "none": nothing,
    "learned": nothing,
    "sinusoidal": nothing,
    "rope": nothing,
    "relative": relative,
    "alibi": alibi,
    "learned_and_relative": relative,
    "relative_rows": nothing,
}
