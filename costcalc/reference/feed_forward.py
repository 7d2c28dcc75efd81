"""The kinds of feed-forward part that a layer may have, one of them or two beside each other."""

from __future__ import annotations

from collections.abc import Callable

from costcalc.reference.arrays import Array, Fields
from costcalc.reference.kinds import of_kind
from costcalc.reference.mixture import mixture
from costcalc.reference.networks import NETWORKS
from costcalc.reference.tape import Scope

FEED_FORWARD: dict[str, Callable[..., Array]] = {**NETWORKS, "mixture": mixture}


def feed_forward(fields: Fields, x: Array, at: Scope, *, residual: Array) -> Array:
    """One part. x: (B, T, D), what it reads; residual: (B, T, D), what comes into the layer's part before any norm."""
    run = of_kind(FEED_FORWARD, fields["kind"], "feed-forward")
    reads = fields["router"]["reads"] if "router" in fields else "input"
    of_residual = of_kind({"input": False, "residual": True}, reads, "reading of a router")
    return run(fields, x, at, residual=residual) if of_residual else run(fields, x, at)


def two_beside(fields: Fields, x: Array, at: Scope, *, residual: Array, normed: Callable[[Array, str], Array]) -> Array:
    """The outputs of two parts that read one residual stream, each through norms of its own, added (Gemma-4).

    fields: the layer's. x: (B, T, D), what the first part reads; result: (B, T, D).
    """
    first = feed_forward(fields["feed_forward"], x, at.under("feed_forward"), residual=residual)  # (B, T, D)
    read, there = normed(residual, "feed_forward_beside_norm"), at.under("feed_forward_beside")
    second = feed_forward(fields["feed_forward_beside"], read, there, residual=residual)  # (B, T, D)
    return normed(first, "feed_forward_alone_output_norm") + normed(second, "feed_forward_beside_output_norm")
