"""What must hold of any model, measured on this one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from costcalc.inventory import Context, Extent, Inventory, Sequences, Workload
from costcalc.reference.arrays import Array

Number = int | float


@dataclass(frozen=True, slots=True)
class Property:
    """Something that may not happen, and by how much it does.

    measured: None where it does not apply or cannot be told. why: the reason, or what is left out. bound: the most that
    rounding may make of it; 0 is exactly. failed: it cannot be told, and that is no good sign.
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
"""Narrower than this, a norm may leave nothing that tells one token from another."""
EARLIER = "a later token changes earlier logits"
CACHED = "cached decoding differs from the full pass"
STEPS = "prefill FLOPs differ from the sum of decode steps"
FORMS = "absorbed latent attention differs from expanded"
CHUNKS = "scans chunk by chunk differ from token by token"
UNCHANGED = "outputs that a changed token does not change"
BEYOND = "a token is seen beyond the reach of windows"
BOTH_WAYS = "an encoder looks both ways"
NO_STEPS = "an encoder has no decode steps"
ANEW = "what is held goes through a matrix anew in each step"
OF_TEXTS = "labels are told once for a text, in its last step alone"
OF_PASSES = "some products are made once in a pass, however many its tokens"


def rows_sum_to_one(errors: list[float | None]) -> Property:
    """Each query's weights are a distribution over the keys it sees (arXiv 1706.03762, equation 1).

    errors: the largest of each pass. A pass that had no rows, where there should be some, misses 1 by 1.
    """
    name = "sums of attention rows differ from 1"
    if not errors:
        return Property(name, None, ROUNDING, "no layer has attention")
    return Property(name, float(np.max([1.0 if error is None else error for error in errors])), ROUNDING)


def earlier_unchanged(full: Array, changed: Array, *, tells: bool, errors: Sequence[float] = ()) -> Property:
    """Causality: logits before the last token, when only that token is another one.

    full, changed: (B, T, V). errors: how far each layer's earlier rows are from one another, given the same input;
    empty where they must be the same to the last bit. tells: whether another token must have other logits of its own.
    """
    bound = LAYER_ROUNDING if errors else 0
    if not np.any(full[:, -1] != changed[:, -1]):
        why = "the changed token changes nothing, not even its own logits"
        return Property(EARLIER, None, bound, why, failed=tells)
    if full.shape[1] == 1:
        return Property(EARLIER, None, bound, "one token has no earlier one")
    last = distance(full[:, :-1], changed[:, :-1], scale=full) if errors else _largest(full[:, :-1] - changed[:, :-1])
    return Property(EARLIER, float(np.max([*errors, last])), bound)


def changed_outputs(full: Array, changed: Array, *, everywhere: bool, tells: bool) -> Property:
    """Full attention: one token's change reaches the outputs of all tokens; measured is how many stay as they were.

    full, changed: (B, T, any). everywhere: whether some layer sees all tokens; otherwise only the changed token's own
    output, the last one, must change. tells: whether a change must show there.
    """
    if not tells:
        return Property(UNCHANGED, None, 0, "a token need not show in others: too few words or heads, or sharp scores")
    differ = np.any(full != changed, axis=-1)  # (B, T)
    return Property(UNCHANGED, int(np.sum(~differ if everywhere else ~differ[:, -1:])), 0)


def beyond_reach(full: Array, changed: Array, *, reach: int | None) -> Property:
    """Windows: what an encoder's layers make of tokens further from the last, changed one than all windows together.

    full, changed: (B, M, D). reach: that many tokens to a side, None for all.
    """
    far = 0 if reach is None else max(full.shape[1] - 1 - reach, 0)
    if far == 0:
        why = "some layer sees all tokens" if reach is None else "the windows of all layers reach every token"
        return Property(BEYOND, None, 0, why)
    return Property(BEYOND, _largest(full[:, :far] - changed[:, :far]), 0)


def distance(one: Array, other: Array, *, scale: Array) -> float:
    """The largest difference, as a share of the largest number of `scale`."""
    largest = _largest(scale)
    return _largest(one - other) / largest if largest else _largest(one - other)


def cached_equals_full(errors: list[float]) -> Property:
    """The decode step against the last row of the full pass: each layer's output, given the same input, and the logits.

    Layer by layer, since a deep model can blow up the rounding of its first layers to any size.
    """
    return Property(CACHED, float(np.max(errors)), LAYER_ROUNDING)


def tellable(properties: list[Property], *, finite: bool) -> list[Property]:
    """The same properties; one that was measured as no number cannot be told, and none can if the pass is not finite.

    finite: whether all outputs of the pass are numbers.
    """
    why = "numbers of the pass are not finite in float32"
    return [
        Property(p.name, None, p.bound, why, failed=True)
        if p.measured is not None and not (finite and np.isfinite(p.measured))
        else p
        for p in properties
    ]


def prefill_is_decode(inventory: Inventory, recorded: int, prefill: Workload) -> Property:
    """FLOPs of the recorded prefill, against the sum of as many decode steps as the inventory states them."""
    if any(isinstance(size, Sequences) for matmul in inventory.matmuls for size in matmul.axes.values()):
        return Property(STEPS, None, 0, OF_TEXTS)
    if any(not any(isinstance(size, Extent) for size in matmul.axes.values()) for matmul in inventory.matmuls):
        return Property(STEPS, None, 0, OF_PASSES)
    plain = [matmul for matmul in inventory.matmuls if matmul.of is not None and matmul.form is None]
    if any(isinstance(size, Context) for matmul in plain for size in matmul.axes.values()):
        return Property(STEPS, None, 0, ANEW)
    each = [replace(prefill, new_tokens=1, past_tokens=past) for past in range(prefill.new_tokens)]
    steps = sum(matmul.flops(step) for step in each for matmul in inventory.matmuls if matmul.runs(step))
    return Property(STEPS, abs(recorded - steps), 0)


def _largest(x: Array) -> float:
    return float(np.abs(x).max())
