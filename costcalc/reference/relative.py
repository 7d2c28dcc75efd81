"""Relative positions by buckets of distances (T5, arXiv 1910.10683, section 2.1): a number for each head and bucket."""

from __future__ import annotations

import math

import numpy as np

from costcalc.reference.arrays import Array, Fields
from costcalc.reference.tape import Scope, Table

ON_THE_EDGE = 1e-9
"""A distance at which a bucket begins has a whole logarithm there, which rounding must not make smaller."""


def relative_bucket(distances: Array, *, buckets: int = 32, max_distance: int = 128, causal: bool = False) -> Array:
    """The bucket of each distance, key position minus query position, whole numbers of any shape.

    Half of the buckets are for single steps, the other half grow as logarithms do up to `max_distance`, beyond which
    all distances share the last one. causal: all are for earlier keys; otherwise half of them are for later ones.
    """
    distances = np.asarray(distances)
    count = buckets if causal else buckets // 2
    later = np.zeros_like(distances) if causal else np.where(distances > 0, count, 0)
    steps = np.maximum(-distances, 0) if causal else np.abs(distances)
    single = count // 2
    growth = np.log(np.maximum(steps, single) / single) / math.log(max_distance / single)  # 0 .. 1 at max_distance
    grown = single + np.floor(growth * (count - single) + ON_THE_EDGE).astype(distances.dtype)
    found: Array = later + np.where(steps < single, steps, np.minimum(grown, count - 1))
    return found


def relative_table(fields: Fields, heads: int, at: Scope) -> Table:
    """A table of (buckets, N); of MPNet it stands beside the one of positions (arXiv 2004.09297)."""
    name = "distances" if fields["kind"] == "learned_and_relative" else "positions"
    return at.table(name, fields["buckets"], heads)


def relative_numbers(fields: Fields, table: Table, distances: Array, *, causal: bool) -> Array:
    """What is added to a query's scores: (s) distances of keys -> (N, s)."""
    found = relative_bucket(
        distances, buckets=fields["buckets"], max_distance=fields["max_distance"], causal=causal
    )  # (s)
    return table.rows(found).T  # (s, N) -> (N, s)
