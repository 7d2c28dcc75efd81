"""How many conversations fit into a memory: a ledger, and the cache curve read backwards.

The curve is not a rate: layers with a window stop growing, so no count of them is pool / bytes a token.
Two answers have names: *architectural*, what the mathematics needs, and *engine-reserved*, what an engine sets aside
when it hands out whole blocks (Kwon et al., arXiv 2309.06180).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict

from costcalc.calculators.figure import Figure
from costcalc.calculators.kv_cache import held_bytes
from costcalc.calculators.search import last_true
from costcalc.calculators.workings import cache_figures
from costcalc.errors import CostcalcError
from costcalc.expression import positive, symbol, symbols
from costcalc.inventory import Cached, Context, Extent, Inventory, Memory, PagedContext, PagedMemory, Record

LEDGER = "device memory, less what is kept free and the weights, is what caches may fill"
LONGEST = "the largest S whose cache fits into the pool"
PAGING = "whole blocks of tokens: Kwon et al., arXiv 2309.06180, section 4.1"


class Asked(TypedDict):
    """What a conversation holds beside its context, and in which dtype."""

    memory_tokens: int
    dtype: str


@dataclass(frozen=True, slots=True)
class Paging:
    """How an engine sets cache aside: blocks of `block` tokens, `slots` tokens in flight beyond a window.

    honours_windows: False for an engine that keeps the whole context of every layer, window or not.
    """

    block: int = 16
    slots: int = 0
    honours_windows: bool = True


@dataclass(frozen=True, slots=True)
class Capacity:
    """What fits into a pool of bytes, by one way to hold caches.

    conversation: the bytes of one, at the context asked for; state: those of them that do not grow. conversations: how
    many fit, each rounded up by itself; None where a conversation holds nothing. longest_context: tokens of a single
    one, 0 if none fits; None if the cache stops growing before the pool is full.
    """

    pool: Figure
    conversation: Figure
    conversations: Figure | None
    longest_context: Figure | None
    state: Figure

    @property
    def concurrency(self) -> float:
        """Pool over bytes of one conversation, the number that engines log; below 0 where the pool is."""
        return self.pool.value / self.conversation.value if self.conversation.value else 0.0


def ledger(memory: Figure, reserve: Figure, weights: Figure) -> Figure:
    """What is left for caches, in bytes; negative when the weights alone do not fit."""
    formula = symbol(memory.name) - symbol(reserve.name) - symbol(weights.name)
    parts = {figure.name: figure for figure in (memory, reserve, weights)}
    return Figure("pool_bytes", "bytes", formula, parts, source=LEDGER)


def pool_of_blocks(inventory: Inventory, blocks: int, *, paging: Paging, dtype: str) -> Figure:
    """The bytes of an engine's `blocks`: each holds the same few tokens in every layer that caches.

    Those of a model with cross-attention hold decoder or encoder tokens, in as many layers as have the one or the
    other, so that their number alone says nothing: refused. So is that of a model with states, which are no blocks of
    tokens.
    """
    if any(record.kind == "state" for record in inventory.cached):
        raise CostcalcError(
            "blocks of a cache hold tokens, and this model's recurrent layers hold states beside them",
            hint="--memory 80GiB, or a pool's bytes (--pool), in place of --blocks",
        )
    if inventory.takes_memory or not inventory.has_cache:
        why = (
            "hold decoder tokens or encoder tokens" if inventory.has_cache else "are not for an encoder, which has none"
        )
        raise CostcalcError(f"blocks of a cache {why}", hint="--memory 80GiB, or a pool's bytes, in place of --blocks")
    figures = cache_figures(paged(inventory, paging), paging.block, dtype=dtype, prefix="block_")
    one = figures["block_kv_cache_bytes"].named("block_bytes")
    count, size = symbols("blocks block_bytes")
    return Figure("pool_bytes", "bytes", count * size, {"blocks": blocks, one.name: one}, source=PAGING)


def capacity(
    inventory: Inventory,
    pool: Figure,
    context: int,
    *,
    dtype: str,
    memory_tokens: int = 0,
    paging: Paging | None = None,
) -> Capacity:
    """Conversations of `context` tokens in a pool of bytes; `paging` gives the engine-reserved answer.

    Each conversation of an encoder-decoder also holds keys and values of its `memory_tokens` encoder tokens.
    """
    question: Asked = {"memory_tokens": memory_tokens, "dtype": dtype}
    held = inventory if paging is None else paged(inventory, paging)
    way, source, prefix = (
        ("architectural", LEDGER, "conversation_") if paging is None else ("engine_reserved", PAGING, "engine_")
    )
    figures = cache_figures(held, context, prefix=prefix, **question)
    conversation = figures[f"{prefix}kv_cache_bytes"].named(f"{way}.bytes_per_conversation")
    both = {pool.name: pool, conversation.name: conversation}
    count = positive(symbol(pool.name) // symbol(conversation.name))
    conversations = Figure(f"{way}.conversations", "", count, both, source=source)
    longest = last_true(lambda tokens: held_bytes(held, tokens, **question) <= pool.value)
    return Capacity(
        pool=pool,
        conversation=conversation,
        conversations=conversations if conversation.value else None,
        longest_context=None if longest is None else _longest(way, held, question, pool, longest, source),
        state=figures[f"{prefix}state_bytes"].named(f"{way}.state_bytes_per_conversation"),
    )


def _longest(way: str, held: Inventory, question: Asked, pool: Figure, found: int, source: str) -> Figure:
    """The context that was found, with the caches there and a token further on, of which one fits and one does not."""
    prefix = f"longest_{way}_"
    below = cache_figures(held, max(found, 1), prefix=prefix, **question)
    sides = [below[f"{prefix}kv_cache_bytes"], below[f"{prefix}kv_bytes_per_token"]] if found else []
    name, terms = f"{way}.longest_context", (pool, *sides)
    return Figure(name, "tokens", terms=terms, source=source, words=LONGEST, found=found)


def paged(inventory: Inventory, paging: Paging) -> Inventory:
    """The same inventory with every cache that grows as an engine sets it aside; a state is no block of tokens."""
    return replace(inventory, records=tuple(_paged(record, paging) for record in inventory.records))


def _paged(record: Record, paging: Paging) -> Record:
    if not isinstance(record, Cached) or record.kind == "state":
        return record
    return record._replace(axes={letter: _extent(size, paging) for letter, size in record.axes.items()})


def _extent(size: int | Extent, paging: Paging) -> int | Extent:
    if isinstance(size, Context):
        if not paging.honours_windows:
            return PagedContext(paging.block)
        return PagedContext(paging.block, size.window, paging.slots, size.chunk)
    return PagedMemory(paging.block) if isinstance(size, Memory) else size
