"""The working of the numbers of `costcalc show` and `compare`: those of other commands, under the names there."""

from __future__ import annotations

from collections.abc import Iterable

from costcalc.calculators.attention import attention_figures
from costcalc.calculators.conventions import six_nd_figure
from costcalc.calculators.rule_of_thumb import rule_of_thumb_figures
from costcalc.calculators.weights import weight_bytes, weight_format
from costcalc.calculators.workings import Figures, cache_figures, component_figures, parameter_figures
from costcalc.inventory import Inventory

RENAMED = {"next_token_flops": "next_token_forward_flops"}
"""What the page calls otherwise than `costcalc attention` does."""


def page_figures(
    inventory: Inventory,
    context: int,
    dtype: str,
    *,
    batch: int = 1,
    memory_tokens: int = 0,
    counting: str = "attended",
    held: Inventory | None = None,
) -> Figures:
    """Every number of the page by its key in the JSON, and those of `costcalc attention` and `costcalc kv` beside it.

    The page itself has a batch of 1 and attended pairs; dtype is that of the cache and of the score matrices. held: the
    inventory whose caches are held, where they are held in another way than the maths needs.
    """
    caches: Figures = {}
    if inventory.has_cache:
        caches = cache_figures(held or inventory, context, batch=batch, memory_tokens=memory_tokens, dtype=dtype)
    figures = {
        **parameter_figures(inventory),
        **component_figures(inventory),
        **attention_figures(inventory, context, memory_tokens=memory_tokens, counting=counting, dtype=dtype),
        **caches,
        **rule_of_thumb_figures(inventory),
        "sequence_6nd_flops": six_nd_figure(inventory, context).named("sequence_6nd_flops"),
    }
    return {**figures, **{new: figures[old].named(new) for new, old in RENAMED.items() if old in figures}}


def stored_figures(inventory: Inventory, dtypes: Iterable[str]) -> Figures:
    """Bytes of the weights in each dtype, by its dotted key in the JSON."""
    return {f"weight_bytes.{name}": weight_bytes(inventory, weight_format(name)) for name in dtypes}
