"""What an architecture is made of: the workload, the extents that depend on it, and the three records."""

from costcalc.expression import smaller
from costcalc.inventory.extents import (
    Context,
    CrossPairs,
    Extent,
    Logits,
    Memory,
    PagedContext,
    Pairs,
    Routed,
    Tokens,
)
from costcalc.inventory.records import Cached, Inventory, Matmul, Record, Weight, group_of
from costcalc.inventory.workload import Workload

__all__ = [
    "Cached",
    "Context",
    "CrossPairs",
    "Extent",
    "Inventory",
    "Logits",
    "Matmul",
    "Memory",
    "PagedContext",
    "Pairs",
    "Record",
    "Routed",
    "Tokens",
    "Weight",
    "Workload",
    "group_of",
    "smaller",
]
