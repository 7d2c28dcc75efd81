"""Whether a workload can be asked of a model: who has encoder tokens, who has a past, and what is not stated."""

from __future__ import annotations

from typing import Any, Literal

from costcalc.errors import CostcalcError
from costcalc.inventory.extents import Logits
from costcalc.inventory.records import Inventory
from costcalc.inventory.workload import Workload

NAMES = {"flops": "FLOPs", "cache": "the cache"}


def check_asked(inventory: Inventory, workload: Workload, *, of: Literal["flops", "cache"] = "flops") -> None:
    """Raise `CostcalcError` for encoder tokens that are missing or that nobody reads, and for an encoder's past.

    of: what is asked; refused as well where some part does not state it.
    """
    check_stated(inventory, of=of)
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


def check_stated(inventory: Inventory, *, of: Literal["flops", "cache"]) -> None:
    """Raise `CostcalcError` where some part of a model does not state what is asked."""
    for missing in inventory.unstated:
        if missing.of == of:
            raise CostcalcError(
                f"{NAMES[of]} of this model cannot be told: {missing.why}",
                where=missing.path,
                hint="its parameters can: costcalc params",
            )


def reads_last_logits(inventory: Inventory) -> bool:
    """Whether logits of the last token alone mean anything: not in an encoder, nor without a head."""
    heads = any(isinstance(size, Logits) for matmul in inventory.matmuls for size in matmul.axes.values())
    return inventory.has_cache and heads


def _is_zero(length: Any) -> bool:
    """A whole number that is 0; an array of a sweep is left to its own."""
    return isinstance(length, int) and length == 0
