"""`costcalc explain`: how a number comes about, whichever report it stands in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from costcalc.calculators.figure import Figure
from costcalc.calculators.rules import RULES
from costcalc.calculators.weights import WeightFormat, weight_format, weight_formats, weight_sizes
from costcalc.calculators.workings import (
    Figures,
    component_figures,
    flop_figures,
    layer_figures,
    parameter_figures,
)
from costcalc.cli.emit import emit
from costcalc.cli.flops import new_tokens
from costcalc.cli.memory import Question as OfMemory
from costcalc.cli.memory import asked_of_memory, fit_figures, fit_of
from costcalc.cli.models import NO_NEXT_TOKEN, check_pass, context_or_own, header, load_all, memory_for
from costcalc.cli.options import (
    Batch,
    Blocks,
    BlockSize,
    Context,
    Counting,
    Debug,
    Dtype,
    Format,
    Json,
    Logits,
    Memory,
    MemoryTokens,
    Output,
    PastTokens,
    Reserve,
    SeqLen,
    Version,
    Weights,
    WindowSlots,
    complete_model,
)
from costcalc.cli.pages import page_figures
from costcalc.cli.train import train_figures, training_ways
from costcalc.cli.weights import weight_figures
from costcalc.cli.working import explained, stated, value_cell
from costcalc.dtypes import canonical_dtype
from costcalc.errors import CostcalcError, nearest, shown
from costcalc.inventory import Workload
from costcalc.report import Report, Row, Table
from costcalc.units import parse_bytes, parse_count, parse_length

if TYPE_CHECKING:
    from costcalc.architecture import Architecture

ALIASES = {
    "parameters": "total_parameters",
    "params": "total_parameters",
    "total": "total_parameters",
    "embedding": "embedding_parameters",
    "non_embedding": "non_embedding_parameters",
    "active": "active_parameters",
    "flops": "forward_flops",
    "forward": "forward_flops",
    "attention": "attention_flops",
    "train": "train_flops",
    "training": "train_flops",
    "per_token": "flops_per_token",
    "kv": "kv_cache_bytes",
    "kv_cache": "kv_cache_bytes",
    "cache": "kv_cache_bytes",
    "kv_per_token": "kv_bytes_per_token",
    "6nd": "6nd_total",
    "weights": "weight_bytes",
    "pool": "pool_bytes",
    "conversations": "engine_reserved.conversations",
}
"""What people call a number, and the key that it has in the JSON."""
ABSENT = {
    "crossings": "the core never grows so large",
    "train_flops": "a training pass has no past tokens and computes all logits",
    "sequence_train_flops": "a training pass has no past tokens and computes all logits",
    **{f"{way}.longest_context": "the cache stops growing" for way in ("architectural", "engine_reserved")},
    **{rule.name: "it does not apply to this model, costcalc train says why" for rule in RULES},
}
"""Numbers that a model or a question may not have, and why."""
OF_A_NEXT_TOKEN = ("kv_", "cross_cache_", "state_", "next_token_")
"""How the names of numbers begin that an encoder alone has none of."""
NEEDS_MEMORY = ("pool_bytes", "architectural.", "engine_reserved.", "reserve_bytes", "memory_bytes", "left_bytes")

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="A preset or alias, a file, or -.", autocompletion=complete_model, show_default=False
    ),
]
Numbers = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NUMBER", help="Keys of any report's JSON, such as kv_cache_bytes; none lists them.", show_default=False
    ),
]
Tokens = Annotated[
    str | None,
    typer.Option("--tokens", metavar="COUNT", help="Tokens trained on, for conventions; default: those of the batch."),
]


def run(
    model: Model,
    numbers: Numbers = None,
    seq_len: SeqLen = None,
    batch: Batch = "1",
    past_tokens: PastTokens = "0",
    memory_tokens: MemoryTokens = None,
    counting: Counting = "attended",
    logits: Logits = "all",
    context: Context = None,
    dtype: Dtype = "bf16",
    tokens: Tokens = None,
    memory: Memory = None,
    weights: Weights = "bf16",
    reserve: Reserve = "0B",
    blocks: Blocks = None,
    block_size: BlockSize = "16",
    window_slots: WindowSlots = "0",
    form: Format = None,
    as_json: Json = False,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> None:
    """Any number of any report: its formula, the numbers put in, each term, the source.

    --dtype is the cache's. Numbers of `fits` need --memory or --blocks, as there.
    """
    del version, debug
    [loaded] = load_all([model])
    held_in = None if memory is None else parse_bytes(memory, name="--memory")
    known = _of_weights(loaded, weight_format(weights), held_in)
    if not numbers or not all(_key(word, known) in known for word in numbers):
        given = Given(seq_len, context, memory_tokens, batch, past_tokens, counting, logits, dtype, tokens)
        of_memory = (memory, blocks, reserve, weights, canonical_dtype(dtype), block_size, window_slots)
        fits = None if memory is None and blocks is None else asked_of_memory(*of_memory)
        known = {**_of_lengths(loaded, _question(loaded, given), fits), **known}
    report = _list(loaded, known) if not numbers else explained({loaded.name: _asked(numbers, known)})
    emit(report, form=form, as_json=as_json, output=output)


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


@dataclass(frozen=True, slots=True)
class Question:
    """What the numbers are asked for."""

    workload: Workload
    context: int
    dtype: str
    train_tokens: int | None


def _question(model: Architecture, given: Given) -> Question:
    """Of --seq-len and --context one is enough: the other follows."""
    [memory_tokens] = memory_for([model], given.memory_tokens)
    sequences = parse_length(given.batch, name="--batch")
    past = parse_length(given.past_tokens, name="--past-tokens", least=0)
    check_pass(model, past_tokens=past, logits=given.logits)
    asks_context = given.seq_len is None or given.context is not None
    context = context_or_own(model, given.context) if asks_context else None
    new = context if given.seq_len is None and context is not None else new_tokens(model, given.seq_len)
    return Question(
        workload=Workload(sequences, new, past, memory_tokens, counting=given.counting, logits=given.logits),
        context=past + new if context is None else context,
        dtype=canonical_dtype(given.dtype),
        train_tokens=None if given.tokens is None else parse_count(given.tokens, name="--tokens"),
    )


def _of_weights(model: Architecture, weights: WeightFormat, memory_bytes: int | None) -> Figures:
    """Every number that no length changes, by its key."""
    inventory = model.inventory
    sizes = weight_sizes(inventory, [weights, *weight_formats()])
    asked = sizes[weights.name].named("weight_bytes")
    return {
        **parameter_figures(inventory),
        **component_figures(inventory),
        **layer_figures(inventory),
        **weight_figures(sizes, memory_bytes),
        asked.name: asked,
    }


def _of_lengths(model: Architecture, question: Question, fits: OfMemory | None) -> Figures:
    """Every number that lengths change; with a memory those of `costcalc fits` too."""
    known = _of_question(model, question)
    if fits is not None:
        known.update(fit_figures(fit_of(model, question.context, question.workload.memory_tokens, fits)))
    return known


def _of_question(model: Architecture, question: Question) -> Figures:
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
        ),
        **flop_figures(inventory, workload),
        **training,
    }


def _asked(words: list[str], known: Figures) -> list[Figure]:
    """The numbers in the order of asking, each once, whatever names it has."""
    found = [figure for word in words for figure in _found(word, known)]
    return list({(figure.name, figure.unit): figure for figure in found}.values())


def _found(word: str, known: Figures) -> list[Figure]:
    """The number of this key or everyday name, or what there is of this path; else refused with the nearest."""
    folded, key = _folded(word), _key(word, known)
    if key in known:
        return [known[key]]
    lines = (below for figure in known.values() for below in figure.lineage())
    of_path = {below.unit: below for below in lines if _folded(below.name) == folded}  # its parameters, its FLOPs
    if of_path:
        return list(of_path.values())
    if key.startswith(NEEDS_MEMORY) and "pool_bytes" not in known:
        raise CostcalcError(f"{key} depends on a memory", hint="add --memory 80GiB, or --blocks 1952")
    for absent, reason in ABSENT.items():
        if key == absent or key.startswith(f"{absent}."):
            raise CostcalcError(f"{key} is null here: {reason}", hint="costcalc explain MODEL lists the numbers")
    if key.startswith(OF_A_NEXT_TOKEN) and "kv_cache_bytes" not in known:
        raise CostcalcError(f"{key} is null here: {NO_NEXT_TOKEN}", hint="costcalc explain MODEL lists the numbers")
    close = nearest(folded, [*known, *ALIASES], count=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "costcalc explain MODEL lists the numbers"
    raise CostcalcError(f"no report has a number called {shown(word)}", hint=hint)


def _key(word: str, known: Figures) -> str:
    """The key that a word means: as it stands in the JSON, whatever its case, or by an everyday name."""
    folded = _folded(word)
    keys = {_folded(key): key for key in known}
    return keys.get(folded) or keys.get(ALIASES.get(folded, folded)) or ALIASES.get(folded, folded)


def _folded(word: str) -> str:
    return word.strip().lower().replace("-", "_")


def _list(model: Architecture, known: Figures) -> Report:
    rows = [Row(key, (value_cell(each), each.unit), status=each.nature) for key, each in known.items()]
    data: dict[str, Any] = {
        **header("explain", model),
        "explained": [],
        "numbers": [{"name": key, "unit": each.unit, "value": stated(each)} for key, each in known.items()],
    }
    return Report(
        title=f"{model.name}: numbers that can be explained",
        tables=(Table("number", ("value", "of"), tuple(rows), status="exact"),),
        notes=("costcalc explain MODEL NUMBER shows how one comes about; fits has more, with --memory",),
        data=data,
    )
