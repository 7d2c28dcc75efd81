"""The numbers that `costcalc explain` knows, in groups: what no length changes, a pass and its cache, all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from costcalc.calculators.experts import MOST_TOKENS, expert_figures
from costcalc.calculators.weights import WeightFormat, weight_formats, weight_sizes
from costcalc.calculators.workings import (
    Figures,
    cache_figures,
    component_figures,
    flop_figures,
    layer_figures,
    parameter_figures,
)
from costcalc.cli.flops import new_tokens
from costcalc.cli.kv import check_holding, holding
from costcalc.cli.memory import Question as OfMemory
from costcalc.cli.memory import fit_figures, fit_of
from costcalc.cli.models import check_pass, context_or_own, memory_for
from costcalc.cli.pages import page_figures
from costcalc.cli.train import train_figures, training_ways
from costcalc.cli.weights import weight_figures
from costcalc.dtypes import canonical_dtype
from costcalc.inventory import Inventory, Workload
from costcalc.units import parse_count, parse_length

if TYPE_CHECKING:
    from costcalc.architecture import Architecture


class Given(NamedTuple):
    """Options as they were typed, of what depends on lengths."""

    seq_len: str | None
    context: str | None
    memory_tokens: str | None
    batch: str
    past_tokens: str
    counting: str
    logits: str
    dtype: str
    tokens: str | None
    latent: str | None = None
    no_windows: bool = False
    decompressed: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """What the numbers are asked for."""

    workload: Workload
    context: int
    dtype: str
    train_tokens: int | None
    held: Inventory | None = None


def question_of(model: Architecture, given: Given) -> Question:
    """Of --seq-len and --context one is enough: the other follows."""
    [memory_tokens] = memory_for([model], given.memory_tokens)
    sequences = parse_length(given.batch, name="--batch")
    past = parse_length(given.past_tokens, name="--past-tokens", least=0)
    check_pass(model, past_tokens=past, logits=given.logits, latent=given.latent)
    ways = {"no_windows": given.no_windows, "decompressed": given.decompressed}
    check_holding([model], **ways)
    asks_context = given.seq_len is None or given.context is not None
    context = context_or_own(model, given.context) if asks_context else None
    new = context if given.seq_len is None and context is not None else new_tokens(model, given.seq_len)
    return Question(
        workload=Workload(
            sequences, new, past, memory_tokens, counting=given.counting, logits=given.logits, latent=given.latent
        ),
        context=past + new if context is None else context,
        dtype=canonical_dtype(given.dtype),
        train_tokens=None if given.tokens is None else parse_count(given.tokens, name="--tokens"),
        held=holding(model.inventory, **ways)[0],
    )


def of_weights(model: Architecture, weights: WeightFormat, memory_bytes: int | None, *, batch: int = 1) -> Figures:
    """Every number that no length changes, by its key; batch: the tokens of a step that reads experts."""
    inventory = model.inventory
    sizes = weight_sizes(inventory, [weights, *weight_formats()])
    asked = sizes[weights.name].named("weight_bytes")
    return {
        **parameter_figures(inventory),
        **component_figures(inventory),
        **layer_figures(inventory),
        **weight_figures(sizes, memory_bytes),
        **(expert_figures(inventory, batch) if batch <= MOST_TOKENS else {}),
        asked.name: asked,
    }


def of_lengths(
    model: Architecture, question: Question, fits: OfMemory | None, is_enough: Callable[[Figures], bool]
) -> Figures:
    """Every number that lengths change, or just those of a pass and its cache if they are enough.

    With a memory those of `costcalc fits` too.
    """
    known = of_pass(model, question)
    if question.train_tokens is None and is_enough(known):
        return known
    known = of_question(model, question)
    if fits is not None:
        known.update(fit_figures(fit_of(model, question.context, question.workload.memory_tokens, fits)))
    return known


def of_pass(model: Architecture, question: Question) -> Figures:
    """The numbers of `costcalc flops` and `kv`."""
    inventory, workload = model.inventory, question.workload
    passed = flop_figures(inventory, workload)
    if not inventory.has_cache:
        return passed
    batch, memory, dtype = workload.batch, workload.memory_tokens, question.dtype
    return {
        **passed,
        **cache_figures(question.held or inventory, question.context, batch=batch, memory_tokens=memory, dtype=dtype),
    }


def of_question(model: Architecture, question: Question) -> Figures:
    """Every number that lengths change, by its key, those of `costcalc kv` for the batch that was asked for."""
    inventory, workload = model.inventory, question.workload
    tokens = workload.tokens if question.train_tokens is None else question.train_tokens
    ways = training_ways(model, tokens, workload.new_tokens, workload.memory_tokens)
    training = train_figures(ways, tokens, workload.new_tokens)
    if question.train_tokens is None:  # then it is a training step that is asked for, as of `flops`
        del training["train_flops"]
    return {
        **page_figures(
            inventory,
            question.context,
            question.dtype,
            batch=workload.batch,
            memory_tokens=workload.memory_tokens,
            counting=workload.counting,
            held=question.held,
        ),
        **flop_figures(inventory, workload),
        **training,
    }
