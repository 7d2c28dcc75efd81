"""A memory and what is asked of it: options as one question, and a model's ledger, for `fits` and `explain`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from costcalc.calculators.capacity import Capacity, Paging, capacity, ledger, pool_of_blocks
from costcalc.calculators.figure import Figure, given
from costcalc.calculators.weights import WeightFormat, weight_bytes, weight_format
from costcalc.dtypes import canonical_dtype
from costcalc.errors import CostcalcError
from costcalc.expression import symbol
from costcalc.units import parse_bytes, parse_length

if TYPE_CHECKING:
    from costcalc.architecture import Architecture

BLOCKS_ARE_LEFT = "leave it out: an engine's blocks, or its pool, are what all else left; or give --memory"
WAYS = "--memory 80GiB; or --blocks 1952, or --pool 5.38GiB, as an engine logs them"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of every model: exactly one of memory_bytes, blocks and pool_bytes is given."""

    memory_bytes: int | None
    blocks: int | None
    pool_bytes: int | None
    reserve_bytes: int
    weights: WeightFormat
    kv_dtype: str
    paging: Paging


@dataclass(frozen=True, slots=True)
class Fit:
    """One model's ledger, and both answers."""

    model: Architecture
    context: int
    memory_tokens: int
    question: Question
    weights: Figure | None
    pool: Figure
    architectural: Capacity
    engine: Capacity

    @property
    def fits(self) -> bool:
        """Whether at least one conversation does, by what an engine sets aside."""
        count = self.engine.conversations
        return self.pool.value >= 0 if count is None else count.value > 0

    @property
    def is_heavy(self) -> bool:
        """Whether the weights are more than the whole memory."""
        return self.weights is not None and self.weights.value > (self.question.memory_bytes or 0)


def asked_of_memory(
    memory: str | None,
    blocks: str | None,
    reserve: str,
    weights: str,
    kv_dtype: str,
    block_size: str,
    window_slots: str,
    pool: str | None = None,
) -> Question:
    """The options as one question; the memory is given in one of three ways."""
    ways = {"--memory": memory, "--blocks": blocks, "--pool": pool}
    given_ways = [name for name, word in ways.items() if word is not None]
    if len(given_ways) != 1:
        said = f"both {' and '.join(given_ways)} are given" if given_ways else "no memory is given"
        raise CostcalcError(said, hint=WAYS)
    reserve_bytes = parse_bytes(reserve, name="--reserve")
    if memory is None and reserve_bytes:
        raise CostcalcError(f"--reserve has no part in {given_ways[0]}", hint=BLOCKS_ARE_LEFT)
    return Question(
        memory_bytes=None if memory is None else parse_bytes(memory, name="--memory"),
        blocks=None if blocks is None else parse_length(blocks, name="--blocks"),
        pool_bytes=None if pool is None else parse_bytes(pool, name="--pool"),
        reserve_bytes=reserve_bytes,
        weights=weight_format(weights),
        kv_dtype=canonical_dtype(kv_dtype),
        paging=_paging(block_size, window_slots),
    )


def _paging(block_size: str, window_slots: str) -> Paging:
    block = parse_length(block_size, name="--block-size")
    if window_slots.strip().lower() == "all":
        return Paging(block, honours_windows=False)
    try:
        return Paging(block, slots=parse_length(window_slots, name="--window-slots", least=0))
    except CostcalcError as error:
        raise CostcalcError(error.what, hint="--window-slots takes all, or tokens such as 2k") from None


def fit_of(model: Architecture, context: int, memory_tokens: int, question: Question) -> Fit:
    """One model's ledger and both answers, for conversations of `context` tokens (a decoder's) and memory_tokens."""
    inventory, dtype, weights = model.inventory, question.kv_dtype, None
    if question.blocks is not None:
        pool = pool_of_blocks(inventory, question.blocks, paging=question.paging, dtype=dtype)
    elif question.pool_bytes is not None:
        pool = given("pool_bytes", "bytes", question.pool_bytes)
    else:
        memory = given("memory_bytes", "bytes", question.memory_bytes or 0)
        reserve = given("reserve_bytes", "bytes", question.reserve_bytes)
        weights = weight_bytes(inventory, question.weights).named("weight_bytes")
        pool = ledger(memory, reserve, weights)
    return Fit(
        model=model,
        context=context,
        memory_tokens=memory_tokens,
        question=question,
        weights=weights,
        pool=pool,
        architectural=capacity(inventory, pool, context, dtype=dtype, memory_tokens=memory_tokens),
        engine=capacity(inventory, pool, context, dtype=dtype, memory_tokens=memory_tokens, paging=question.paging),
    )


def fit_figures(each: Fit) -> dict[str, Figure]:
    """The working of every number, by its key in the JSON."""
    ways = (each.architectural, each.engine)
    parts = [part for way in ways for part in (way.conversation, way.conversations, way.longest_context)]
    parts += [way.state for way in ways if way.state.value]
    parts += [_together(way) for way in ways]
    parts += [_concurrency(name, way) for name, way in zip(("architectural", "engine_reserved"), ways, strict=True)]
    return {part.name: part for part in (each.weights, each.pool, *parts) if part is not None}


def _together(way: Capacity) -> Figure | None:
    if way.conversations is None:
        return None
    both = {figure.name: figure for figure in (way.conversations, way.conversation)}
    name = way.conversations.name.replace("conversations", "bytes_of_conversations")
    return Figure(name, "bytes", symbol(way.conversations.name) * symbol(way.conversation.name), both)


def _concurrency(name: str, way: Capacity) -> Figure | None:
    if way.conversation.value == 0:
        return None
    both = {figure.name: figure for figure in (way.pool, way.conversation)}
    return Figure(f"{name}.concurrency", "", symbol(way.pool.name) / symbol(way.conversation.name), both)
