"""What must hold of any decoder, measured on this one."""

from __future__ import annotations

from collections.abc import Iterator
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

    measured: None where it does not apply, and `why` then. bound: the most that rounding may make of it; 0 is exactly.
    """

    name: str
    measured: Number | None
    bound: Number
    why: str = ""

    @property
    def holds(self) -> bool:
        """Whether what was measured is within the bound; a property that does not apply does not fail."""
        return self.measured is None or self.measured <= self.bound


ROUNDING = 1e-5
"""Sums of some dozen float32 numbers."""
DEEP_ROUNDING = 1e-4
"""Two orders of the same float32 sums, through all layers, against the largest logit."""
DOUBLE_ROUNDING = 1e-9
"""Rotations at positions of some thousands in float64."""


def rows_sum_to_one(errors: list[float | None]) -> Property:
    """Each query's weights are a distribution over the keys it sees (arXiv 1706.03762, equation 1).

    errors: the largest of each pass. A pass that had no rows, where there should be some, misses 1 by 1.
    """
    name = "sums of attention rows differ from 1"
    if not errors:
        return Property(name, None, ROUNDING, "no layer has attention")
    return Property(name, float(np.max([1.0 if error is None else error for error in errors])), ROUNDING)


def earlier_unchanged(full: Array, changed: Array) -> Property:
    """Causality: logits before the last token, when only that token is another one. full, changed: (B, T, V)."""
    name = "a later token changes earlier logits"
    if not np.any(full[:, -1] != changed[:, -1]):
        return Property(name, None, 0, "the changed token changes nothing, not even its own logits")
    if full.shape[1] == 1:
        return Property(name, None, 0, "one token has no earlier one")
    return Property(name, _largest(full[:, :-1] - changed[:, :-1]), 0)


def cached_equals_full(full: Array, step: Array) -> Property:
    """The last token's logits from the cache, against the same from the full pass, relative to the largest logit."""
    name = "cached decoding differs from the full pass"
    scale = _largest(full[:, -1])
    return Property(name, _largest(full[:, -1] - step[:, -1]) / scale if scale else 0.0, DEEP_ROUNDING)


def not_finite(*properties: Property) -> list[Property]:
    """The same properties, not measured: the numbers of the pass have left the range of float32."""
    return [Property(p.name, None, p.bound, "the random numbers overflow float32") for p in properties]


def prefill_is_decode(inventory: Inventory, recorded: int, tokens: int) -> Property:
    """FLOPs of the recorded prefill, against the sum of as many decode steps as the inventory states them."""
    steps = sum(
        matmul.flops(Workload(new_tokens=1, past_tokens=past)) for past in range(tokens) for matmul in inventory.matmuls
    )
    return Property("prefill FLOPs differ from the sum of decode steps", abs(recorded - steps), 0)


def rotations(positions: list[tuple[dict[str, Any], int]]) -> Iterator[Property]:
    """RoPE turns each pair by an angle: scores depend on offsets only, and lengths stay (arXiv 2104.09864, eq. 16).

    positions: the distinct rotary fields with the head size that they turn.
    """
    offset_error = norm_error = 0.0
    for fields, head_dim in positions:
        q, k = np.random.default_rng(0).normal(size=(2, 1, head_dim))  # (1, H) each

        def turned(x: Array, position: int, fields: dict[str, Any] = fields) -> Array:
            return rope(x, np.array([position]), theta=fields["theta"], rotary_dim=fields["rotary_dim"])

        scores = [float((turned(q, at + 3) @ turned(k, at).T).item()) for at in (0, 2, 102, 1002, 8191)]
        lengths = [float(np.linalg.norm(turned(q, at))) for at in (0, 77, 8191)]
        size = float(np.linalg.norm(q))
        offset_error = max(offset_error, (max(scores) - min(scores)) / (size * float(np.linalg.norm(k))))
        norm_error = max(norm_error, max(abs(length - size) for length in lengths) / size)
    why = "" if positions else "no layer has rotary positions"
    for name, error in (("RoPE scores at one offset differ", offset_error), ("RoPE changes lengths", norm_error)):
        yield Property(name, error if positions else None, DOUBLE_ROUNDING, why)


def _largest(x: Array) -> float:
    return float(np.abs(x).max())
