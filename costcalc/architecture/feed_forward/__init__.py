"""The kinds of feed-forward network. A new kind is a file here, a file in `reference/`, a member here, and cases."""

from typing import Annotated

from pydantic import Field

from costcalc.architecture.feed_forward.dense import Dense
from costcalc.architecture.feed_forward.gated import Gated
from costcalc.architecture.feed_forward.mixture import Mixture
from costcalc.architecture.feed_forward.rwkv_channel import RWKVChannel

FeedForward = Annotated[Dense | Gated | Mixture | RWKVChannel, Field(discriminator="kind")]
Network = Annotated[Dense | Gated | Mixture, Field(discriminator="kind")]
"""Those that hold nothing of earlier tokens."""

__all__ = ["Dense", "FeedForward", "Gated", "Mixture", "Network", "RWKVChannel"]
