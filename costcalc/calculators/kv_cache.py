"""How much memory a request holds: keys and values of its context, and whatever else stays between two tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace

from costcalc.dtypes import bytes_for, canonical_dtype
from costcalc.inventory import Cached, Context, Extent, Inventory, Workload, check_asked, group_of
from costcalc.inventory.workload import checked_length


@dataclass(frozen=True, slots=True)
class KVCache:
    """What `batch` requests of one context hold: what the maths needs, not what an engine reserves in pages.

    elements grow with the context, up to each layer's window; cross_elements (keys and values of encoder tokens) and
    state_elements (recurrent state) do not. bytes is all three, each dtype's share rounded up once; state_bytes the
    state's part; bytes_per_token what the next token of every request adds. All of them are None for an encoder alone:
    it sees a text at once, no later token comes back to it, and so nothing is kept.
    """

    elements: int | None
    cross_elements: int | None
    state_elements: int | None
    bytes: int | None
    state_bytes: int | None
    bytes_per_token: int | None


def kv_cache(
    inventory: Inventory, context: int, *, batch: int = 1, memory_tokens: int = 0, dtype: str = "bf16"
) -> KVCache:
    """The cache of `batch` requests after `context` tokens each, in `dtype` except where a model fixes its own.

    Of an encoder-decoder the context is the decoder's, and memory_tokens are the encoder's, which it cannot be without.
    """
    context = checked_length(context, name="context", least=1)
    dtype = canonical_dtype(dtype)
    now = Workload(batch=batch, new_tokens=context, memory_tokens=memory_tokens)
    check_asked(inventory, now, of="cache")
    if not inventory.has_cache:
        return NO_CACHE
    after = Workload(batch=batch, new_tokens=context + 1, memory_tokens=memory_tokens)
    held, next_held = _held(inventory, now), _held(inventory, after)
    held_bytes = _bytes(held, dtype)
    return KVCache(
        elements=_of_kind(held, "kv"),
        cross_elements=_of_kind(held, "cross"),
        state_elements=_of_kind(held, "state"),
        bytes=held_bytes,
        state_bytes=_bytes({key: count for key, count in held.items() if key[0] == "state"}, dtype),
        bytes_per_token=_bytes(next_held, dtype) - held_bytes,
    )


@dataclass(frozen=True, slots=True)
class LayerCache:
    """What the equal layers of one group hold together: how many layers, the tokens that each keeps of a sequence.

    state_elements: what of the elements does not grow. tokens: 0 where nothing is kept of single tokens.
    """

    layers: int
    tokens: int
    elements: int
    state_elements: int = 0


def layer_caches(inventory: Inventory, workload: Workload) -> dict[str, LayerCache]:
    """What each group of layers holds after the pass; empty where all layers that can hold something hold the same.

    An encoder beside a decoder holds nothing, and is none of them.
    """
    depths, one = inventory.layers_of, replace(workload, batch=1)
    held: dict[str, list[Cached]] = {group: [] for group in depths if not group.startswith("encoder.")}
    for record in inventory.cached:
        group = group_of(record.path, held)
        if group is not None:
            held[group].append(record)
    if len({tuple(tuple(record.axes.items()) for record in records) for records in held.values()}) <= 1:
        return {}
    return {
        group: LayerCache(
            layers=depths[group],
            tokens=max((_tokens(record, one) for record in records if record.kind != "state"), default=0),
            elements=sum(record.elements(workload) for record in records),
            state_elements=sum(record.elements(workload) for record in records if record.kind == "state"),
        )
        for group, records in held.items()
    }


def _tokens(record: Cached, one: Workload) -> int:
    return max((size.of(one) for size in record.axes.values() if isinstance(size, Extent)), default=0)


def without_windows(inventory: Inventory) -> Inventory:
    """The same inventory where every layer holds the whole context, as in an engine that knows no windows or chunks."""
    held = [
        r._replace(axes={letter: Context() if isinstance(size, Context) else size for letter, size in r.axes.items()})
        if isinstance(r, Cached)
        else r
        for r in inventory.records
    ]
    return replace(inventory, records=tuple(held))


NO_CACHE = KVCache(None, None, None, None, None, None)


def held_bytes(inventory: Inventory, context: int, *, memory_tokens: int = 0, dtype: str = "bf16") -> int:
    """The bytes of one request, 0 where nothing is kept."""
    return kv_cache(inventory, context, memory_tokens=memory_tokens, dtype=dtype).bytes or 0


Held = dict[tuple[str, str | None], int]
"""Elements per (kind, own dtype)."""


def _held(inventory: Inventory, workload: Workload) -> Held:
    held: Held = {}
    for record in inventory.cached:
        key = (record.kind, record.dtype)
        held[key] = held.get(key, 0) + record.elements(workload)
    return held


def _of_kind(held: Held, kind: str) -> int:
    return sum([count for key, count in held.items() if key[0] == kind])


def _bytes(held: Held, dtype: str) -> int:
    """Elements of one dtype together, rounded up once."""
    elements: dict[str, int] = {}
    for (_, own), count in held.items():
        elements[own or dtype] = elements.get(own or dtype, 0) + count
    return sum([bytes_for(count, name) for name, count in elements.items()])
