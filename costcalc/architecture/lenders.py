"""Layers that read the keys and values of an earlier one, or meet the keys that it chose: whether those are there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from costcalc.architecture.attention import GroupedQuery, Latent
from costcalc.architecture.component import RuleError, Where

if TYPE_CHECKING:
    from costcalc.architecture.block import Block


def check_lenders(entries: tuple[Any, ...], where: Where, d_model: int) -> None:
    """Raise `RuleError` where a layer's `cache_of` names no earlier layer, or one whose keys it cannot read.

    The nearest earlier layer of that name lends. It has a cache of its own, with as many heads of the same sizes and
    the same window or chunk.
    """
    if not any(_borrows(block) for block, _ in _written(entries, (*where, "layers"))):
        return
    nearest: dict[str, Block] = {}
    names = {block.name for block, _ in _written(entries, (*where, "layers"))}
    for block, at in _in_order(entries, (*where, "layers")):
        attention = block.attention
        if isinstance(attention, GroupedQuery) and attention.cache_of is not None:
            lender, spot = nearest.get(attention.cache_of), (*at, "attention", "cache_of")
            if lender is None:
                raise _no_lender(attention.cache_of, spot, block, is_later=attention.cache_of in names)
            _check_lender(attention, lender, spot, d_model)
        if block.name is not None:
            nearest[block.name] = block


def check_choosers(entries: tuple[Any, ...], where: Where) -> None:
    """Raise `RuleError` where a layer has `top_k` keys chosen and no `indexer`, and no earlier layer chose as many."""
    chosen: int | None = None
    for block, at in _in_order(entries, where):
        attention = block.attention
        if not isinstance(attention, Latent) or attention.top_k is None:
            continue
        if attention.indexer is not None:
            chosen = attention.top_k
        elif chosen is None:
            message = "no earlier layer chooses the `top_k` keys that this one meets"
            raise RuleError(message, (*at, "attention", "top_k"), "write an `indexer` here, or in a layer before")
        elif chosen != attention.top_k:
            message = f"top_k {attention.top_k}, and the nearest earlier layer with an indexer chooses {chosen}"
            raise RuleError(message, (*at, "attention", "top_k"), f"write `top_k: {chosen}`, or an `indexer` here")


def _no_lender(name: str, where: Where, block: Block, *, is_later: bool) -> RuleError:
    if name == block.name:
        return RuleError(f"the layer {name!r} cannot read itself", where, "write the name of an earlier layer")
    if is_later:
        message = f"the layer {name!r} comes later: its keys and values are not made yet"
        return RuleError(message, where, "write the name of an earlier layer")
    message = f"no layer is named {name!r}, whose keys and values could be read"
    return RuleError(message, where, f"write `name: {name}` on an earlier layer, or the name of one")


def _check_lender(attention: GroupedQuery, lender: Block, where: Where, d_model: int) -> None:
    name, lent = attention.cache_of, lender.attention
    if not isinstance(lent, GroupedQuery) or lent.cache_of is not None:
        message = f"the layer {name!r} has no keys and values of its own of this kind of attention"
        raise RuleError(message, where, "name an earlier layer that has")
    if _of_cache(attention, d_model) != _of_cache(lent, d_model):
        message = f"the layer {name!r} caches other heads, or has another window or chunk"
        raise RuleError(message, where, "write the same kv_heads, head_dim, v_dim, window and chunk")


def _of_cache(attention: GroupedQuery, d_model: int) -> tuple[Any, ...]:
    kv_heads, head_dim = attention.sizes(d_model)
    return kv_heads, head_dim, attention.v_dim or head_dim, attention.window, attention.chunk


def _borrows(block: Block) -> bool:
    return block.attention is not None and block.attention.cache_of is not None


def _written(entries: tuple[Any, ...], where: Where) -> Iterator[tuple[Block, Where]]:
    """Each entry that is a layer, once, and where it is written."""
    for index, entry in enumerate(entries):
        if hasattr(entry, "pattern"):
            yield from _written(entry.pattern, (*where, index, "pattern"))
        else:
            yield entry, (*where, index)


def _in_order(entries: tuple[Any, ...], where: Where) -> Iterator[tuple[Block, Where]]:
    """Layers as they follow one another, but those of an entry that is repeated once or twice: more say nothing new."""
    for index, entry in enumerate(entries):
        for _ in range(min(entry.repeat, 2)):
            if hasattr(entry, "pattern"):
                yield from _in_order(entry.pattern, (*where, index, "pattern"))
            else:
                yield entry, (*where, index)
