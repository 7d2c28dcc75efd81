"""What happens between turns of layers that run several times."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from costcalc.reference.arrays import Array, Fields
from costcalc.reference.norms import norm
from costcalc.reference.tape import Scope


class Between(Protocol):
    """Asked in front of each layer and behind it, by its number in the stack."""

    def entered(self, index: int, x: Array) -> Array:
        """What the layer reads, of what the stack has come to. (B, T, D) -> (B, T, D)."""

    def left(self, index: int, x: Array) -> Array:
        """What the stack has come to, of what the layer gives. (B, T, D) -> (B, T, D)."""


class Straight:
    """Layer upon layer."""

    def entered(self, index: int, x: Array) -> Array:
        """As it is."""
        del index
        return x

    def left(self, index: int, x: Array) -> Array:
        """As it is."""
        del index
        return x


class Hierarchy:
    """A slow and a fast module, each with a state (HRM, arXiv 2506.21734, section 2; `HrmTextModel`)."""

    def __init__(self, fields: Fields, x: Array, at: Scope) -> None:
        """x: (B, T, D), the embeddings."""
        self.how, self.norm_of, self.at = fields["hierarchy"], fields["norm"], at
        start = at.parameter("low_start", x.shape[-1], role="frozen")  # (D)
        self.high, self.low = x, np.broadcast_to(start, x.shape)  # (B, T, D) each
        self.fast = self.how["low"] * self.how["low_turns"]

    def entered(self, index: int, x: Array) -> Array:
        """At the beginning of a turn the sum of both states."""
        place = index % (self.fast + self.how["high"])
        begins = place % self.how["low"] == 0 if place < self.fast else place == self.fast
        return self.high + self.low if begins else x

    def left(self, index: int, x: Array) -> Array:
        """At the end of a turn the state that it has made."""
        place = index % (self.fast + self.how["high"])
        if place < self.fast and (place + 1) % self.how["low"] == 0:
            x = self.low = norm(self.norm_of, x, self.at, "turn_norm")
        elif place == self.fast + self.how["high"] - 1:
            x = self.high = norm(self.norm_of, x, self.at, "turn_norm")
        return x


class Loop:
    """Turns that all start from what the layers in front of them gave (`DoryModel`)."""

    def __init__(self, fields: Fields, x: Array, at: Scope) -> None:
        """x: (B, T, D), the embeddings."""
        self.how, self.norm_of, self.at, self.start = fields["loop"], fields["norm"], at, x

    def entered(self, index: int, x: Array) -> Array:
        """At the beginning of a turn what the stack has come to, normed, and the normed start."""
        place = index - self.how["before"]
        if place == 0:
            self.start = norm(self.norm_of, x, self.at, "turn_norm")
        begins = 0 <= place < self.how["layers"] * self.how["turns"] and place % self.how["layers"] == 0
        return norm(self.norm_of, x, self.at, "turn_norm") + self.start if begins else x

    def left(self, index: int, x: Array) -> Array:
        """As it is."""
        del index
        return x


def between(fields: Fields, x: Array, at: Scope) -> Between:
    """What a stack does between its layers. x: (B, T, D), what enters the first."""
    if fields["hierarchy"]:
        return Hierarchy(fields, x, at)
    return Loop(fields, x, at) if fields["loop"] else Straight()
