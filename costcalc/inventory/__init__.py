"""What an architecture is made of: the workload, the extents that depend on it, and the three records."""

from costcalc.expression import smaller
from costcalc.inventory.asked import check_asked, check_stated
from costcalc.inventory.chosen import BlockPairs
from costcalc.inventory.compressed import Entries, EntryPairs, Overlapping, Waiting
from costcalc.inventory.distances import Distances, EachDistances
from costcalc.inventory.extents import (
    AheadPairs,
    Asking,
    Context,
    CrossPairs,
    Extent,
    Logits,
    Memory,
    MemoryPairs,
    PagedContext,
    PagedMemory,
    Pairs,
    Routed,
    Sequences,
    Tokens,
)
from costcalc.inventory.handed import Handed
from costcalc.inventory.reached import Reached
from costcalc.inventory.records import FURTHER_TOKENS, Cached, Inventory, Matmul, Record, Unstated, Weight, group_of
from costcalc.inventory.scans import ChunkPairs, Convolved, WholeChunks
from costcalc.inventory.sparse import (
    BlocksAndMore,
    BlockSparsePairs,
    ChosenBlocks,
    FirstRows,
    LandmarkPairs,
    LocalPairs,
    SlidingPairs,
    StaggeredRows,
    Summed,
    WithSums,
)
from costcalc.inventory.texts import FirstTokens, Stages, Text, TextRows
from costcalc.inventory.workload import Workload

__all__ = [
    "FURTHER_TOKENS",
    "AheadPairs",
    "Asking",
    "BlockPairs",
    "BlockSparsePairs",
    "BlocksAndMore",
    "Cached",
    "ChosenBlocks",
    "ChunkPairs",
    "Context",
    "Convolved",
    "CrossPairs",
    "Distances",
    "EachDistances",
    "Entries",
    "EntryPairs",
    "Extent",
    "FirstRows",
    "FirstTokens",
    "Handed",
    "Inventory",
    "LandmarkPairs",
    "LocalPairs",
    "Logits",
    "Matmul",
    "Memory",
    "MemoryPairs",
    "Overlapping",
    "PagedContext",
    "PagedMemory",
    "Pairs",
    "Reached",
    "Record",
    "Routed",
    "Sequences",
    "SlidingPairs",
    "Stages",
    "StaggeredRows",
    "Summed",
    "Text",
    "TextRows",
    "Tokens",
    "Unstated",
    "Waiting",
    "Weight",
    "WholeChunks",
    "WithSums",
    "Workload",
    "check_asked",
    "check_stated",
    "group_of",
    "smaller",
]
