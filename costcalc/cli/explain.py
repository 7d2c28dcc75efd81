"""`costcalc explain`: how a number comes about, whichever report it stands in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from costcalc.calculators.figure import Figure
from costcalc.calculators.rules import RULES
from costcalc.calculators.weights import weight_format
from costcalc.calculators.workings import Figures
from costcalc.cli.emit import emit
from costcalc.cli.known import Given, of_lengths, of_weights, question_of
from costcalc.cli.memory import asked_of_memory
from costcalc.cli.models import NO_NEXT_TOKEN, header, load_all
from costcalc.cli.options import (
    Batch,
    Blocks,
    BlockSize,
    Context,
    Counting,
    Debug,
    Decompressed,
    Dtype,
    Format,
    Json,
    Latent,
    Logits,
    Memory,
    MemoryTokens,
    NoWindows,
    Output,
    PastTokens,
    Pool,
    ReadAs,
    Reserve,
    SeqLen,
    Version,
    Weights,
    WindowSlots,
    complete_model,
)
from costcalc.cli.working import explained, stated, value_cell
from costcalc.dtypes import canonical_dtype
from costcalc.errors import CostcalcError, nearest, shown
from costcalc.report import Report, Row, Table
from costcalc.units import parse_bytes, parse_length

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
    latent: Latent = None,
    context: Context = None,
    dtype: Dtype = "bf16",
    no_windows: NoWindows = False,
    decompressed: Decompressed = False,
    tokens: Tokens = None,
    memory: Memory = None,
    weights: Weights = "bf16",
    reserve: Reserve = "0B",
    blocks: Blocks = None,
    pool: Pool = None,
    block_size: BlockSize = "16",
    window_slots: WindowSlots = "0",
    read_as: ReadAs = None,
    form: Format = None,
    as_json: Json = False,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> None:
    """Any number of any report: its formula, the numbers put in, each term, the source.

    --dtype is the cache's. Numbers of `fits` need --memory, --blocks or --pool, as there.
    """
    del version, debug
    [loaded] = load_all([model], read_as)
    held_in = None if memory is None else parse_bytes(memory, name="--memory")
    sequences = parse_length(batch, name="--batch")
    known = of_weights(loaded, weight_format(weights), held_in, batch=sequences)
    if not _has(known, numbers):
        lengths = (seq_len, context, memory_tokens, batch, past_tokens)
        given = Given(*lengths, counting, logits, dtype, tokens, latent, no_windows, decompressed)
        of_memory = (memory, blocks, reserve, weights, canonical_dtype(dtype), block_size, window_slots, pool)
        fits = None if memory is None and blocks is None and pool is None else asked_of_memory(*of_memory)
        known = {**of_lengths(loaded, question_of(loaded, given), fits, lambda some: _has(some, numbers)), **known}
    report = _list(loaded, known) if not numbers else explained({loaded.name: _asked(numbers, known)})
    emit(report, form=form, as_json=as_json, output=output)


def _has(known: Figures, numbers: list[str] | None) -> bool:
    """Whether all numbers are known by their keys, so that no others need be worked out."""
    return bool(numbers) and all(_key(word, known) in known for word in numbers or [])


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
    of_places = [figure for name, figure in known.items() if name.startswith(f"{key}.")]
    if of_places:  # such as the experts of several kinds of layers
        return of_places
    if key.startswith(NEEDS_MEMORY) and "pool_bytes" not in known:
        raise CostcalcError(f"{key} depends on a memory", hint="add --memory 80GiB, --blocks 1952 or --pool 5GiB")
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
