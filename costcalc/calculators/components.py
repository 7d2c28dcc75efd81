"""Which component a path belongs to: embedding, attention, feed_forward, norms, positions, head."""

from __future__ import annotations

from costcalc.inventory import Inventory


def component_of(path: str, inventory: Inventory) -> str:
    """'decoder.layers.local.attention.q' -> 'attention': the first word below the stack or its group of layers."""
    below = path
    for stack, groups in inventory.layout.items():
        for prefix in (*dict.fromkeys(groups), stack):
            if path.startswith(f"{prefix}."):
                below = path[len(prefix) + 1 :]
                return _family(below.partition(".")[0])
    return _family(below.partition(".")[0])


def _family(word: str) -> str:
    if word.removesuffix("_bias").endswith("norm"):
        return "norms"
    for family in ("embedding", "head"):
        if word == family or word.startswith(f"{family}_"):
            return family
    return word


def sum_by_component(amounts: list[tuple[str, int]], inventory: Inventory) -> dict[str, int]:
    """(path, amount) pairs summed per component, in the order of the model."""
    totals: dict[str, int] = {}
    for path, amount in amounts:
        component = component_of(path, inventory)
        totals[component] = totals.get(component, 0) + amount
    return totals
