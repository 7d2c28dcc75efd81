"""How much memory a request holds: keys and values of its context, and whatever else stays between two tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from costcalc.dtypes import bytes_for, canonical_dtype
from costcalc.inventory import Cached, Inventory, Workload
from costcalc.inventory.workload import check_length


@dataclass(frozen=True, slots=True)
class KVCache:
    """What `batch` requests of one context hold: what the maths needs, not what an engine reserves in pages.

    elements grow with the context, up to each layer's window; cross_elements (keys and values of encoder tokens) and
    state_elements (recurrent state) do not. bytes is all three, each dtype's share rounded up once; state_bytes the
    state's part; bytes_per_token what the next token of every request adds.
    """

    elements: int
    cross_elements: int
    state_elements: int
    bytes: int
    state_bytes: int
    bytes_per_token: int


def kv_cache(
    inventory: Inventory, context: int, *, batch: int = 1, memory_tokens: int = 0, dtype: str = "bf16"
) -> KVCache:
    """The cache of `batch` requests after `context` tokens each, in `dtype` except where a model fixes its own."""
    check_length(context, name="context", least=1)
    dtype = canonical_dtype(dtype)
    now = Workload(batch=batch, new_tokens=context, memory_tokens=memory_tokens)
    after = Workload(batch=batch, new_tokens=1, past_tokens=context, memory_tokens=memory_tokens)
    cached = inventory.cached
    elements = {"kv": 0, "cross": 0, "state": 0}
    for record in cached:
        elements[record.kind] += record.elements(now)
    held = _bytes(cached, now, dtype)
    return KVCache(
        elements=elements["kv"],
        cross_elements=elements["cross"],
        state_elements=elements["state"],
        bytes=held,
        state_bytes=_bytes([record for record in cached if record.kind == "state"], now, dtype),
        bytes_per_token=_bytes(cached, after, dtype) - held,
    )


def _bytes(cached: Iterable[Cached], workload: Workload, dtype: str) -> int:
    elements: dict[str, int] = {}
    for record in cached:
        own = record.dtype or dtype
        elements[own] = elements.get(own, 0) + record.elements(workload)
    return sum(bytes_for(count, own) for own, count in elements.items())
