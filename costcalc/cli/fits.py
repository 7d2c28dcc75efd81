"""`costcalc fits`: how many conversations fit into a memory, and what limits them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from costcalc.calculators.capacity import Capacity
from costcalc.calculators.weights import weight_format
from costcalc.cli.emit import emit
from costcalc.cli.memory import BLOCKS_ARE_LEFT, Fit, Question, asked_of_memory, fit_figures, fit_of
from costcalc.cli.models import (
    beyond_table,
    column_names,
    context_or_own,
    explain_numbers,
    family_note,
    header,
    idle_cross,
    load_all,
    memory_for,
    not_counted,
    one_or_many,
    with_note,
)
from costcalc.cli.options import (
    Blocks,
    BlockSize,
    Context,
    Debug,
    Explain,
    Format,
    Json,
    KVDtype,
    Memory,
    MemoryTokens,
    Models,
    Output,
    Pool,
    ReadAs,
    Reserve,
    Version,
    Weights,
    WindowSlots,
)
from costcalc.cli.recurrent import state_row
from costcalc.errors import CostcalcError
from costcalc.report import Cell, Measure, Quantity, Report, side_by_side
from costcalc.units import human, several

if TYPE_CHECKING:
    pass

FOLLOW = ("pool for caches", "conversations", "  together", "pool / conversation", "longest context of one")
"""Rows that are no more exact than the weights: all but what a conversation holds."""
NONE_FITS = 1
"""The exit code of the answer no."""


def run(
    models: Models,
    memory: Memory = None,
    context: Context = None,
    memory_tokens: MemoryTokens = None,
    weights: Weights = "bf16",
    kv_dtype: KVDtype = "bf16",
    reserve: Reserve = "0B",
    blocks: Blocks = None,
    pool: Pool = None,
    block_size: BlockSize = "16",
    window_slots: WindowSlots = "0",
    explain: Explain = False,
    read_as: ReadAs = None,
    form: Format = None,
    as_json: Json = False,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> None:
    """How many conversations fit into a memory: a ledger that may go negative; exit code 1 if none does.

    Two answers: what the mathematics needs, and what an engine that hands out whole blocks sets aside.
    """
    del version, debug
    question = asked_of_memory(memory, blocks, reserve, weights, kv_dtype, block_size, window_slots, pool)
    if memory is None and question.weights != weight_format("bf16"):
        given = "--blocks" if pool is None else "--pool"
        raise CostcalcError(f"--weights has no part in {given}", hint=BLOCKS_ARE_LEFT)
    loaded = load_all(models, read_as)
    found = [
        fit_of(model, context_or_own(model, context), tokens, question)
        for model, tokens in zip(loaded, memory_for(loaded, memory_tokens), strict=True)
    ]
    names = column_names([each.model for each in found])
    if explain:
        report = explain_numbers(names, [fit_figures(each) for each in found], [_data(each) for each in found])
    else:
        report = _report(names, found)
    emit(report, form=form, as_json=as_json, output=output)
    if not all(each.fits for each in found):
        raise typer.Exit(NONE_FITS)


def _report(names: list[str], found: list[Fit]) -> Report:
    question = found[0].question
    weights = found[0].weights
    others = {} if weights is None else dict.fromkeys((*FOLLOW, _weights_of(question)), weights.nature)
    tables = [side_by_side("ledger", names, [_ledger(each) for each in found], strong="pool for caches", others=others)]
    tables += [
        side_by_side("architectural", names, [_answers(each.architectural) for each in found], others=others),
        side_by_side(
            f"engine-reserved, blocks of {question.paging.block:,}",
            names,
            [_answers(each.engine) for each in found],
            strong="conversations",
            others=others,
        ),
    ]
    return Report(
        title="; ".join(_answer(name, each) for name, each in zip(names, found, strict=True)),
        tables=tuple(tables),
        notes=tuple(dict.fromkeys(note for each in found for note in _notes(each))),
        data=one_or_many([_data(each) for each in found]),
    )


def _answer(name: str, each: Fit) -> str:
    count = each.engine.conversations
    if each.pool.value < 0:
        if not each.is_heavy:
            return f"{name}: the weights do not fit beside what is kept free, by {human(-each.pool.value, 'bytes')}"
        beyond = -each.pool.value - each.question.reserve_bytes
        return f"{name}: the weights alone do not fit, by {human(beyond, 'bytes')}"
    if count is None:
        return f"{name}: holds no cache, so any number of conversations fits beside the weights"
    fit = "no conversation fits" if count.value == 0 else f"{several(count.value, 'conversation')} fit"
    said = fit if count.value != 1 else "1 conversation fits"
    return f"{name}: {said} at {several(each.context, 'token')}{_beside(each)}"


def _weights_of(question: Question) -> str:
    return f"weights, {question.weights.name}"


def _ledger(each: Fit) -> dict[str, Cell]:
    question = each.question
    if each.weights is None:
        blocks: dict[str, Cell] = {} if question.blocks is None else {"blocks": Quantity(question.blocks, "")}
        return {
            **blocks,
            "pool for caches": Quantity(each.pool.value, "bytes"),
        }
    return {
        "memory": Quantity(question.memory_bytes, "bytes"),
        "kept free": Quantity(-question.reserve_bytes, "bytes"),
        _weights_of(question): Quantity(-each.weights.value, "bytes"),
        "pool for caches": Quantity(each.pool.value, "bytes"),
    }


def _answers(found: Capacity) -> dict[str, Cell]:
    count, longest = found.conversations, found.longest_context
    no_limit = "no limit" if found.pool.value >= 0 else "none"
    return {
        "a conversation holds": Quantity(found.conversation.value, "bytes"),
        **state_row(found.state.value),
        "conversations": no_limit if count is None else Quantity(count.value, ""),
        "  together": Quantity(None if count is None else _together(found), "bytes"),
        "pool / conversation": Measure(None if count is None else found.concurrency, ",.4f"),
        "longest context of one": "no limit" if longest is None else Quantity(longest.value, "tokens"),
    }


def _together(found: Capacity) -> int:
    """The bytes of all conversations that fit."""
    return 0 if found.conversations is None else found.conversations.value * found.conversation.value


def _notes(each: Fit) -> list[str]:
    question = each.question
    slots = f" and {several(question.paging.slots, 'token')} beyond each" if question.paging.slots else ""
    windows = f"windows kept{slots}" if question.paging.honours_windows else "windows ignored"
    length = f"{several(each.context, 'token')}{_beside(each)}"
    caches = (
        f"conversations of {length}, cache in {question.kv_dtype}; the engine hands out blocks "
        f"of {several(question.paging.block, 'token')}, {windows}; "
        if each.model.inventory.has_cache
        else ""
    )
    notes = [f"{caches}activations only as far as kept free"]
    said = (_limit(each), not_counted(each.model), family_note(each.model, each.memory_tokens), _beyond(each))
    notes += [note for note in said if note]
    return notes


def _beside(each: Fit) -> str:
    return f" and {several(each.memory_tokens, 'encoder token')}" if each.memory_tokens else ""


def _limit(each: Fit) -> str | None:
    """The lesson's sentence, where it is true: the KV cache, not the weights, limits how many users fit."""
    count = each.engine.conversations
    if each.weights is None:
        return None
    name, weights = each.model.name, each.weights.value
    if each.pool.value < 0:
        return f"{name}: the weights {'are what does not fit' if each.is_heavy else 'and what is kept free do not fit'}"
    if count is None:
        return None
    caches = (count.value + 1) * each.engine.conversation.value
    held = "state" if each.engine.state.value == each.engine.conversation.value else "KV cache"
    limiting = (
        f"the {held}, not the weights, limits" if caches > weights else f"the weights, more than the {held}, limit"
    )
    return (
        f"{name}: {limiting} how many users fit: one more would make {human(caches, 'bytes')} of cache beside "
        f"{human(weights, 'bytes')} of weights"
    )


def _beyond(each: Fit) -> str | None:
    longest, own = each.architectural.longest_context, each.model.context_length
    beyond = beyond_table(each.model, each.context, each.memory_tokens)
    grows = each.model.inventory.has_cache
    if beyond is None and own is not None and each.context > own:
        return f"{each.context:,} tokens are more than {each.model.name}'s context_length of {own:,}"
    if beyond is None and own is not None and grows and (longest is None or longest.value > own):
        return f"{each.model.name}: the memory would hold more tokens than its context_length of {own:,}"
    return beyond


def _data(each: Fit) -> dict[str, Any]:
    question = each.question
    data = {
        **header("fits", each.model),
        "context": each.context,
        "memory_tokens": each.memory_tokens,
        "kv_dtype": question.kv_dtype,
        "weights": None if each.weights is None else question.weights.name,
        "memory_bytes": question.memory_bytes,
        "blocks": question.blocks,
        "block_size": question.paging.block,
        "window_slots": question.paging.slots if question.paging.honours_windows else None,
        "reserve_bytes": question.reserve_bytes,
        "weight_bytes": None if each.weights is None else each.weights.value,
        "pool_bytes": each.pool.value,
        "fits": each.fits,
        "architectural": _capacity(each.architectural),
        "engine_reserved": _capacity(each.engine),
    }
    family = idle_cross(each.model, each.memory_tokens)
    return with_note(data, _limit(each), not_counted(each.model), family, _beyond(each), _null(each))


def _null(each: Fit) -> str:
    """Which keys do not apply, and why."""
    question = each.question
    left = f"memory_bytes, weights and weight_bytes are null: the {'pool' if question.blocks is None else 'blocks'}"
    reasons = [
        f"{left} {'is' if question.blocks is None else 'are'} what they left" if each.weights is None else "",
        "" if question.blocks is not None else "blocks is null: the memory is given in bytes",
        "" if each.question.paging.honours_windows else "window_slots is null: windows are ignored",
    ]
    if not each.model.inventory.has_cache:
        reasons.append("conversations, concurrency and longest_context are null: no cache is kept")
    else:
        reasons += [
            "longest_context is null: the cache stops growing" if each.engine.longest_context is None else "",
            "conversations and concurrency are null: one holds nothing" if not each.engine.conversations else "",
        ]
    return "; ".join(reason for reason in reasons if reason)


def _capacity(found: Capacity) -> dict[str, Any]:
    return {
        "bytes_per_conversation": found.conversation.value,
        **({"state_bytes_per_conversation": found.state.value} if found.state.value else {}),
        "conversations": None if found.conversations is None else found.conversations.value,
        "bytes_of_conversations": None if found.conversations is None else _together(found),
        "concurrency": None if found.conversations is None else round(found.concurrency, 6),
        "longest_context": None if found.longest_context is None else found.longest_context.value,
    }
