"""How much memory a request holds: keys and values of its context, and whatever else stays between two tokens."""

from __future__ import annotations

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
    cached = inventory.cached
    now = Workload(batch=batch, new_tokens=context, memory_tokens=memory_tokens)
    # The next token: one new after `context` held ones. It is never refused for being one too many.
    after = Workload(batch=batch, new_tokens=1, past_tokens=context, memory_tokens=memory_tokens)
    held = _bytes(cached, now, dtype)
    return KVCache(
        elements=_elements(cached, now, "kv"),
        cross_elements=_elements(cached, now, "cross"),
        state_elements=_elements(cached, now, "state"),
        bytes=held,
        state_bytes=_bytes([record for record in cached if record.kind == "state"], now, dtype),
        bytes_per_token=_bytes(cached, after, dtype) - held,
    )


def _elements(cached: tuple[Cached, ...], workload: Workload, kind: str) -> int:
    return sum(record.elements(workload) for record in cached if record.kind == kind)


def _bytes(cached: tuple[Cached, ...] | list[Cached], workload: Workload, dtype: str) -> int:
    elements: dict[str, int] = {}
    for record in cached:
        own = record.dtype or dtype
        elements[own] = elements.get(own, 0) + record.elements(workload)
    return sum(bytes_for(count, own) for own, count in elements.items())
