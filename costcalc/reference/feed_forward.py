"""The kinds of feed-forward part that a layer may have."""

from __future__ import annotations

from collections.abc import Callable

from costcalc.reference.arrays import Array, Fields
from costcalc.reference.mixture import mixture
from costcalc.reference.networks import NETWORKS
from costcalc.reference.tape import Scope

FEED_FORWARD: dict[str, Callable[[Fields, Array, Scope], Array]] = {**NETWORKS, "mixture": mixture}
