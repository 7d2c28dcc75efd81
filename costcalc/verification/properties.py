"""What must hold of any decoder, measured on this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from costcalc.inventory import Inventory, Workload
from costcalc.reference import rope
from costcalc.reference.arrays import Array

Number = int | float


@dataclass(frozen=True, slots=True)
class Property:
    """Something that may not happen, and by how much it does.

    measured: None where it does not apply or cannot be told, and `why` then. bound: the most that rounding may make of
    it; 0 is exactly. failed: it cannot be told, and that is no good sign.
    """

    name: str
    measured: Number | None
    bound: Number
    why: str = ""
    failed: bool = False

    @property
    def holds(self) -> bool:
        """Whether what was measured is within the bound; a property that does not apply does not fail."""
        return not self.failed and (self.measured is None or self.measured <= self.bound)


ROUNDING = 1e-5
"""Sums of some dozen float32 numbers."""
LAYER_ROUNDING = 1e-4
"""Two orders of the same float32 sums, through one layer, against the largest number there."""
FEW = 8
"""Numbers of a token, of fewer than which a norm may leave nothing that tells one token from another."""
DOUBLE_ROUNDING = 1e-9
"""Rotations at positions of some thousands in float64."""
LEAST_THETA = 0.01
"""Angles are positions over powers of theta: with a smaller one they exceed 10^6, and rounding what is bound."""


def rows_sum_to_one(errors: list[float | None]) -> Property:
    """Each query's weights are a distribution over the keys it sees (arXiv 1706.03762, equation 1).

    errors: the largest of each pass. A pass that had no rows, where there should be some, misses 1 by 1.
    """
    name = "sums of attention rows differ from 1"
    if not errors:
        return Property(name, None, ROUNDING, "no layer has attention")
    return Property(name, float(np.max([1.0 if error is None else error for error in errors])), ROUNDING)


def earlier_unchanged(full: Array, changed: Array, *, tells: bool) -> Property:
    """Causality: logits before the last token, when only that token is another one.

    full, changed: (B, T, V). tells: whether another token must have other logits of its own.
    """
    name = "a later token changes earlier logits"
    if not np.any(full[:, -1] != changed[:, -1]):
        why = "the changed token changes nothing, not even its own logits"
        return Property(name, None, 0, why, failed=tells)
    if full.shape[1] == 1:
        return Property(name, None, 0, "one token has no earlier one")
    return Property(name, _largest(full[:, :-1] - changed[:, :-1]), 0)


def distance(one: Array, other: Array, *, scale: Array) -> float:
    """The largest difference, as a share of the largest number of `scale`."""
    largest = _largest(scale)
    return _largest(one - other) / largest if largest else _largest(one - other)


def cached_equals_full(errors: list[float]) -> Property:
    """The decode step against the last row of the full pass: each layer's output, given the same input, and the logits.

    Layer by layer, since a deep model can blow up the rounding of its first layers to any size.
    """
    return Property("cached decoding differs from the full pass", float(np.max(errors)), LAYER_ROUNDING)


def not_finite(*properties: Property) -> list[Property]:
    """The same properties, which cannot be told: the numbers of the pass have left the range of float32."""
    why = "the numbers of the pass overflow float32"
    return [p if p.why else Property(p.name, None, p.bound, why, failed=True) for p in properties]


def prefill_is_decode(inventory: Inventory, recorded: int, tokens: int) -> Property:
    """FLOPs of the recorded prefill, against the sum of as many decode steps as the inventory states them."""
    steps = sum(
        matmul.flops(Workload(new_tokens=1, past_tokens=past)) for past in range(tokens) for matmul in inventory.matmuls
    )
    return Property("prefill FLOPs differ from the sum of decode steps", abs(recorded - steps), 0)


def rotations(positions: list[tuple[dict[str, Any], int]]) -> list[Property]:
    """RoPE turns each pair by an angle: scores depend on offsets only, and lengths stay (arXiv 2104.09864, eq. 16).

    positions: the distinct rotary fields with the head size that they turn.
    """
    names = ("RoPE scores at one offset differ", "RoPE changes lengths")
    if not positions:
        return [Property(name, None, DOUBLE_ROUNDING, "no layer has rotary positions") for name in names]
    told = [(fields, head_dim) for fields, head_dim in positions if fields["theta"] >= LEAST_THETA]
    if not told:
        why = f"theta is below {LEAST_THETA}: angles of such positions are lost in rounding"
        return [Property(name, None, DOUBLE_ROUNDING, why) for name in names]
    worst = np.max([_rotation_errors(*turned) for turned in told], axis=0)  # (2)
    return [Property(name, float(error), DOUBLE_ROUNDING) for name, error in zip(names, worst, strict=True)]


def _rotation_errors(fields: dict[str, Any], head_dim: int) -> tuple[float, float]:
    """By how much scores at one offset differ, and lengths change, as shares of the vectors' own."""
    q, k = np.random.default_rng(0).normal(size=(2, head_dim))  # (H) each

    def turned(x: Array, positions: list[int]) -> Array:
        return rope(x, np.array(positions), theta=fields["theta"], rotary_dim=fields["rotary_dim"])  # (T, H)

    starts = [0, 2, 102, 1002, 8191]
    scores = (turned(q, [start + 3 for start in starts]) * turned(k, starts)).sum(axis=-1)  # (T)
    sizes = np.linalg.norm(turned(q, [0, 77, 8191]), axis=-1)  # (T)
    size, other = np.linalg.norm(q), np.linalg.norm(k)
    return float((scores.max() - scores.min()) / (size * other)), float(abs(sizes - size).max() / size)


def _largest(x: Array) -> float:
    return float(np.abs(x).max())
