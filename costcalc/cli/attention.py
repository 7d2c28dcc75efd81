"""`costcalc attention`: the quadratic part, at one context after another."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from costcalc.calculators.attention import SHARES, AttentionCost, attention_cost, crossing, passes_of
from costcalc.calculators.flops import Flops
from costcalc.cli.emit import emit
from costcalc.cli.models import (
    beyond_table,
    column_names,
    explain_numbers,
    family_note,
    header,
    load_all,
    memory_for,
    one_or_many,
    with_note,
)
from costcalc.cli.options import (
    Counting,
    Debug,
    Dtype,
    Explain,
    Format,
    Json,
    MemoryTokens,
    Models,
    Output,
    ReadAs,
    Version,
)
from costcalc.dtypes import canonical_dtype
from costcalc.errors import CostcalcError
from costcalc.report import Quantity, Ratio, Report, Row, Table
from costcalc.units import parse_length, several

if TYPE_CHECKING:
    from costcalc.architecture import Architecture

USUAL = "1k,2k,4k,8k,16k,32k,64k,128k,256k,512k,1M"
MOST_CONTEXTS = 100
Contexts = Annotated[
    str, typer.Option("--contexts", metavar="TOKENS,...", help="Contexts to look at, such as 1k,8k,128k,1M.")
]
NEVER = "a crossing is null where the core never stays so large"
SAID = {"half_of_weights": "half as large as the weights' part", "equal_to_weights": "as large as the weights' part"}
PASSES = {"next_token": "next token", "sequence": "whole sequence"}


@dataclass(frozen=True, slots=True)
class Quadratic:
    """One model's attention at every context asked for, and where it overtakes the weights."""

    model: Architecture
    dtype: str
    counting: str
    memory_tokens: int
    costs: tuple[AttentionCost, ...]
    crossings: dict[str, dict[str, int | None]]

    def figures(self) -> Any:
        """The working of the numbers at the longest context."""
        from costcalc.calculators.attention import attention_figures  # noqa: PLC0415 - only --explain needs it

        return attention_figures(
            self.model.inventory,
            self.costs[-1].context,
            memory_tokens=self.memory_tokens,
            counting=self.counting,
            dtype=self.dtype,
        )


def run(
    models: Models,
    contexts: Contexts = USUAL,
    memory_tokens: MemoryTokens = None,
    counting: Counting = "attended",
    dtype: Dtype = "bf16",
    explain: Explain = False,
    read_as: ReadAs = None,
    form: Format = None,
    as_json: Json = False,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> None:
    """The quadratic part: the attention core by context, its share, and where it overtakes the weights.

    Also the score matrices that an unfused kernel writes in --dtype and that FlashAttention never stores.
    """
    del version, debug
    dtype, lengths = canonical_dtype(dtype), parsed_contexts(contexts)
    loaded = load_all(models, read_as)
    found = [
        _quadratic(model, lengths, memory, counting, dtype)
        for model, memory in zip(loaded, memory_for(loaded, memory_tokens), strict=True)
    ]
    names = column_names([each.model for each in found])
    if explain:
        longest = [{**_at(each.costs[-1]), "crossings": _crossings(each)} for each in found]
        report = explain_numbers(names, [each.figures() for each in found], longest)
    else:
        report = _report(names, found)
    emit(report, form=form, as_json=as_json, output=output)


def parsed_contexts(text: str) -> list[int]:
    """'1k,8k' -> [1024, 8192], in order, each once; a comma parts them, so '8,192' is refused: it may be one or two."""
    grouped = re.search(r"(?<!\w)(?<!\d,)\d{1,3}(?:,\d{3})+(?!\w)(?!,\d+(?:,|$))", text)
    if grouped:
        one, several = grouped[0].replace(",", ""), grouped[0].replace(",", ", ")
        what = f"--contexts {grouped[0]} may be one length or several"
        raise CostcalcError(what, hint=f'--contexts {one}, or --contexts "{several}"')
    lengths = {parse_length(word, name="--contexts") for word in text.split(",")}
    if len(lengths) > MOST_CONTEXTS:
        raise CostcalcError(f"--contexts has more than {MOST_CONTEXTS} lengths", hint=f"--contexts {USUAL}")
    return sorted(lengths)


def _quadratic(model: Architecture, lengths: list[int], memory_tokens: int, counting: str, dtype: str) -> Quadratic:
    inventory, known = model.inventory, passes_of(model.inventory)
    question: Any = {"memory_tokens": memory_tokens, "counting": counting}
    return Quadratic(
        model=model,
        dtype=dtype,
        counting=counting,
        memory_tokens=memory_tokens,
        costs=tuple(attention_cost(inventory, length, dtype=dtype, **question) for length in lengths),
        crossings={
            share: {of: crossing(inventory, share, of=of, **question) if of in known else None for of in PASSES}
            for share in SHARES
        },
    )


def _report(names: list[str], found: list[Quadratic]) -> Report:
    tables = [table for name, each in zip(names, found, strict=True) for table in _tables(name, each, len(found) > 1)]
    return Report(
        title="; ".join(_answer(name, each) for name, each in zip(names, found, strict=True)),
        tables=tuple(tables),
        notes=_notes(found),
        data=one_or_many([_data(each) for each in found]),
    )


def _answer(name: str, each: Quadratic) -> str:
    last = each.costs[-1]
    share = last.sequence.attention / last.sequence.forward
    equal = each.crossings["equal_to_weights"]["sequence"]
    where = "never overtakes the weights" if equal is None else f"overtakes the weights at {several(equal, 'token')}"
    return f"{name}: attention is {share:.1%} of a sequence of {several(last.context, 'token')} and {where}"


def _tables(name: str, each: Quadratic, is_one_of_several: bool) -> list[Table]:
    before = f"{name}: " if is_one_of_several else ""
    core = [Row(f"{cost.context:,}", (_flops(cost.next_token), _flops(cost.sequence))) for cost in each.costs]
    shares = [
        Row(
            f"{cost.context:,}",
            (
                None if cost.next_token is None else _share(cost.next_token, "percent"),
                _share(cost.sequence, "bar"),
            ),
        )
        for cost in each.costs
    ]
    stored = [
        Row(f"{cost.context:,}", (Quantity(cost.score_bytes_per_layer, "bytes"), Quantity(cost.score_bytes, "bytes")))
        for cost in each.costs
    ]
    crossed = [
        Row(
            SAID[share],
            tuple(None if of not in passes_of(each.model.inventory) else _context(found[of]) for of in PASSES),
        )
        for share, found in each.crossings.items()
    ]
    both, shares_are = tuple(PASSES.values()), "modelled" if each.costs[-1].sequence.modelled else "exact"
    return [
        Table(f"{before}attention core at context", both, tuple(core), status="exact"),
        Table(f"{before}share of the forward pass", both, tuple(shares), status=shares_are),
        Table(f"{before}context from which on it is", both, tuple(crossed), status="exact"),
        Table(f"{before}scores never stored, {each.dtype}", ("a layer", "all layers"), tuple(stored), status="exact"),
    ]


def _flops(counted: Flops | None) -> Quantity:
    return Quantity(None if counted is None else counted.attention, "FLOPs")


def _share(counted: Flops, form: str) -> Ratio:
    return Ratio(counted.attention, counted.forward, form)


def _context(tokens: int | None) -> Quantity | str:
    return "never" if tokens is None else Quantity(tokens, "tokens")


def _notes(found: list[Quadratic]) -> tuple[str, ...]:
    pairs = {
        "attended": "the pairs that mask and window allow",
        "rectangle": "every query with every key it is handed",
    }[found[0].counting]
    has_next = any(each.model.inventory.has_cache for each in found)
    last = "; the next token is the last one of the context" if has_next else ""
    notes = [
        f"one sequence; attention counts {pairs}{last}",
        "an unfused kernel writes query heads x queries x keys scores a layer, masked ones too; FlashAttention none "
        "(arXiv 2205.14135)",
    ]
    notes += [
        note
        for each in found
        for note in [family_note(each.model, each.memory_tokens), _memory(each), _beyond(each)]
        if note
    ]
    return tuple(notes)


def _memory(each: Quadratic) -> str | None:
    if not each.memory_tokens:
        return None
    own = ", whose own pass is part of the whole sequence's" if each.model.inventory.needs_memory else ""
    tokens = several(each.memory_tokens, "encoder token")
    return f"{each.model.name}: contexts are the decoder's, each beside {tokens}{own}"


def _beyond(each: Quadratic) -> str | None:
    return beyond_table(each.model, each.costs[-1].context, each.memory_tokens)


def _data(each: Quadratic) -> dict[str, Any]:
    data = {
        **header("attention", each.model),
        "counting": each.counting,
        "memory_tokens": each.memory_tokens,
        "dtype": each.dtype,
        "contexts": [{"context": cost.context, **_at(cost)} for cost in each.costs],
        "crossings": _crossings(each),
    }
    known = passes_of(each.model.inventory)
    never = None in [found[of] for found in each.crossings.values() for of in known]
    return with_note(data, NEVER if never else None, family_note(each.model, each.memory_tokens), _beyond(each))


def _crossings(each: Quadratic) -> dict[str, Any]:
    return {f"{share}_context": found for share, found in each.crossings.items()}


def _at(cost: AttentionCost) -> dict[str, Any]:
    numbers = {}
    for of in PASSES:
        counted = asdict(cost)[of] or dict.fromkeys(("forward", "attention", "weights"))
        numbers.update({f"{of}_{key}_flops": counted[key] for key in ("forward", "attention")})
        numbers[f"{of}_weight_flops"] = counted["weights"]
    return {
        **numbers,
        "score_matrix_bytes": cost.score_bytes,
        "score_matrix_bytes_per_layer": cost.score_bytes_per_layer,
    }
