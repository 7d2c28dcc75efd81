"""The kinds of feed-forward part that a layer may have, one of them or two beside each other."""

from __future__ import annotations

from collections.abc import Callable

from costcalc.reference.arrays import Array, Fields
from costcalc.reference.kinds import of_kind
from costcalc.reference.mixture import mixture
from costcalc.reference.networks import NETWORKS
from costcalc.reference.rwkv import rwkv_channel
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope

FEED_FORWARD: dict[str, Callable[..., Array]] = {**NETWORKS, "mixture": mixture}
HOLDING: dict[str, Callable[..., Array]] = {"rwkv_channel": rwkv_channel}
"""Those that keep something of earlier tokens."""


def feed_forward(fields: Fields, x: Array, at: Scope, *, residual: Array, sight: Sight) -> Array:
    """One part. x: (B, T, D), what it reads; residual: (B, T, D), what comes into the layer's part before any norm."""
    if fields["kind"] in HOLDING:
        return HOLDING[fields["kind"]](fields, x, at, sight=sight)
    run = of_kind(FEED_FORWARD, fields["kind"], "feed-forward")
    reads = fields["router"]["reads"] if "router" in fields else "input"
    of_residual = of_kind({"input": False, "residual": True}, reads, "reading of a router")
    looks = "router" in fields and any(fields["router"].get(key) for key in ("network", "table"))
    more = {"sight": sight} if looks else {}
    return run(fields, x, at, residual=residual, **more) if of_residual else run(fields, x, at, **more)


def two_beside(
    fields: Fields, x: Array, at: Scope, *, residual: Array, normed: Callable[[Array, str], Array], sight: Sight
) -> Array:
    """The outputs of two parts that read one residual stream, each through norms of its own, added (Gemma-4).

    fields: the layer's. x: (B, T, D), what the first part reads; result: (B, T, D).
    """
    here, there = at.under("feed_forward"), at.under("feed_forward_beside")
    first = feed_forward(fields["feed_forward"], x, here, residual=residual, sight=sight)  # (B, T, D)
    read = normed(residual, "feed_forward_beside_norm")  # (B, T, D)
    second = feed_forward(fields["feed_forward_beside"], read, there, residual=residual, sight=sight)  # (B, T, D)
    return normed(first, "feed_forward_alone_output_norm") + normed(second, "feed_forward_beside_output_norm")
