"""Which component a path belongs to: embedding, attention, feed_forward, norms, positions, head."""

from __future__ import annotations

from collections.abc import Container

from costcalc.inventory import Inventory, group_of

SHIFTED = ("_gain", "_shift")
"""Of the stream and of what is added to it (ZAYA1): one part of a model, whichever sublayer it is behind."""


def component_of(path: str, inventory: Inventory, groups: Container[str]) -> str:
    """'decoder.layers.local.attention.q' -> 'attention': the first word below its group of layers, or its stack."""
    group = group_of(path, groups)
    if group is not None:
        below = path[len(group) + 1 :]
    else:
        stack, _, rest = path.partition(".")
        below = rest if stack in inventory.layout else path
    return _family(below.partition(".")[0])


def _family(word: str) -> str:
    if word.removesuffix("_bias").endswith("norm"):
        return "norms"
    if word.endswith(SHIFTED) and not word.startswith("embedding"):
        return "residual"
    for family in ("embedding", "head"):
        if word == family or word.startswith(f"{family}_"):
            return family
    return word


def sum_by_component(amounts: list[tuple[str, int]], inventory: Inventory) -> dict[str, int]:
    """(path, amount) pairs summed per component, in the order of the model."""
    totals: dict[str, int] = {}
    groups = inventory.layers_of
    for path, amount in amounts:
        component = component_of(path, inventory, groups)
        totals[component] = totals.get(component, 0) + amount
    return totals
