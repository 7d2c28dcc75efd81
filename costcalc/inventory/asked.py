"""Whether a workload can be asked of a model: who has encoder tokens, and who has a past."""

from __future__ import annotations

from typing import Any

from costcalc.errors import CostcalcError
from costcalc.inventory.extents import Logits
from costcalc.inventory.records import Inventory
from costcalc.inventory.workload import Workload


def check_asked(inventory: Inventory, workload: Workload) -> None:
    """Raise `CostcalcError` for encoder tokens that are missing or that nobody reads, and for an encoder's past."""
    if inventory.needs_memory and _is_zero(workload.memory_tokens):
        raise CostcalcError(
            "an encoder-decoder reads encoder tokens, and none are given",
            hint="memory_tokens=512, or --memory-tokens 512 on the command line: the tokens of the encoder's text",
        )
    if not inventory.takes_memory and not _is_zero(workload.memory_tokens):
        raise CostcalcError(
            "this model has no cross-attention, so that nothing reads memory_tokens", hint="memory_tokens=0"
        )
    if not inventory.has_cache and not _is_zero(workload.past_tokens):
        raise CostcalcError(
            "an encoder sees all of its tokens at once and has no past", hint="past_tokens=0, all of them in new_tokens"
        )


def reads_last_logits(inventory: Inventory) -> bool:
    """Whether logits of the last token alone mean anything: not in an encoder, nor without a head."""
    heads = any(isinstance(size, Logits) for matmul in inventory.matmuls for size in matmul.axes.values())
    return inventory.has_cache and heads


def _is_zero(length: Any) -> bool:
    """A whole number that is 0; an array of a sweep is left to its own."""
    return isinstance(length, int) and length == 0
