"""`costcalc compare`: models side by side, and of two models what each difference costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from costcalc import __version__
from costcalc.cli.column import WEIGHT_DTYPES, Column, column, compared, data, ratios, sheets, statuses
from costcalc.cli.emit import emit
from costcalc.cli.models import (
    beyond_table,
    column_names,
    explain_numbers,
    family_note,
    load_all,
    memory_for,
    not_counted,
    with_note,
)
from costcalc.cli.options import Debug, Dtype, Explain, Format, Json, MemoryTokens, Models, Output, ReadAs, Version
from costcalc.dtypes import canonical_dtype
from costcalc.errors import CostcalcError, nearest, shown
from costcalc.report import Quantity, Report, Table, side_by_side
from costcalc.units import parse_length, several

if TYPE_CHECKING:
    from costcalc.architecture import Architecture

T = TypeVar("T")
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline", metavar="NAME", help="The model that ratios and changes start from; default: the first."
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="TOKENS",
        help="Tokens, such as 8k (8,192), the same for all models; default: their smallest context.",
    ),
]
STRONG = {"parameters": "total", "forward FLOPs": "next token"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """All models at one context, in the order in which they were named; `first` is the baseline's index.

    memories: the encoder tokens of each.
    """

    models: list[Architecture]
    names: list[str]
    columns: list[Column]
    first: int
    context: int
    memories: list[int]
    dtype: str

    @property
    def memory_tokens(self) -> int:
        """Encoder tokens of the models that read any."""
        return max(self.memories)


def run(
    models: Models,
    baseline: Baseline = None,
    context: Context = None,
    memory_tokens: MemoryTokens = None,
    dtype: Dtype = "bf16",
    explain: Explain = False,
    read_as: ReadAs = None,
    form: Format = None,
    as_json: Json = False,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> None:
    """Models side by side, with ratios to one; of two models also what each difference costs on its own.

    Parameters, FLOPs of the next token and of the whole sequence, KV cache and weights, all at one context. For two
    models, every field that differs is changed alone; what only their combination does stands in one row, together.
    """
    del version, debug
    if len(models) == 1:
        parts = [] if "/" in models[0] else [part for part in models[0].split(",") if part]
        meant = parts if len(parts) > 1 else [models[0], "8b" if models[0] == "gpt2" else "gpt2"]
        hint = f"name two or more, such as costcalc compare {' '.join(meant)}"
        raise CostcalcError("one model has nothing to be compared with", hint=hint)
    dtype = canonical_dtype(dtype)
    loaded = load_all(models, read_as)
    names = column_names(loaded)
    first = 0 if baseline is None else _index_of(baseline, names, models)
    tokens, why = _common_context(loaded) if context is None else (parse_length(context, name="--context"), "")
    memories = memory_for(loaded, memory_tokens)
    columns = [
        column(model, tokens, dtype, memory_tokens=memory) for model, memory in zip(loaded, memories, strict=True)
    ]
    found = Comparison(loaded, names, columns, first, tokens, memories, dtype)
    emit(_working(found) if explain else _report(found, why), form=form, as_json=as_json, output=output)


def _working(found: Comparison) -> Report:
    """The formulas of each model's numbers."""
    from costcalc.cli.pages import page_figures, stored_figures  # noqa: PLC0415 - only --explain needs them

    known = [
        {
            **page_figures(model.inventory, found.context, found.dtype, memory_tokens=memory),
            **stored_figures(model.inventory, WEIGHT_DTYPES),
        }
        for model, memory in zip(found.models, found.memories, strict=True)
    ]
    return explain_numbers(found.names, known, [data(of) for of in found.columns])


def _index_of(word: str, names: list[str], typed: list[str]) -> int:
    """The model whose column has this name, or else that was typed so."""
    for known in (names, typed):
        if word in known:
            return known.index(word)
    close = nearest(word, [*names, *typed])
    hint = f"did you mean --baseline {shown(close[0])}?" if close else f"--baseline takes one of: {', '.join(names)}"
    raise CostcalcError(f"no model here is called {shown(word)}", hint=hint)


def _common_context(models: list[Architecture]) -> tuple[int, str]:
    """The smallest context_length that a model has, and where it comes from."""
    known = [(model.context_length, model.name) for model in models if model.context_length is not None]
    if not known:
        raise CostcalcError("none of the models has a context_length", hint="give --context, such as --context 8k")
    tokens, name = min(known, key=lambda pair: pair[0])
    return tokens, f"{several(tokens, 'token')} for all: the smallest context_length, {name}'s"


def _report(found: Comparison, why: str) -> Report:
    tables, numbers = _tables(found), _data(found)
    always = [why, *[family_note(model, memory) for model, memory in zip(found.models, found.memories, strict=True)]]
    always += [
        beyond_table(model, found.context, memory) for model, memory in zip(found.models, found.memories, strict=True)
    ]
    if found.memory_tokens:
        always.append(f"{several(found.memory_tokens, 'encoder token')} beside the context, where a model reads them")
    always += [not_counted(model) for model in found.models]
    notes = [*always, "weights hold every parameter in the one dtype"]
    if len(found.models) == 2:
        from costcalc.cli import differences as of_two  # noqa: PLC0415 - for more models it is not needed

        question = of_two.Question(found.context, found.memory_tokens, found.dtype)
        changed = of_two.differences(*_base_first(found.models, found), question)
        base, other = _base_first(found.names, found)
        tables += [of_two.table(changed, base, other)]
        notes += of_two.notes(changed, base, other)
        numbers |= of_two.data(changed)
    return Report(
        title=_title(found),
        tables=tuple(table for table in tables if table.rows),
        notes=tuple(dict.fromkeys(note for note in notes if note)),
        data=with_note(numbers, *always),
    )


def _base_first(pair: list[T], found: Comparison) -> tuple[T, T]:
    return pair[found.first], pair[1 - found.first]


def _title(found: Comparison) -> str:
    base = found.columns[found.first]
    said = [
        f"{name} {_times(of.counted.total, base.counted.total)} parameters, "
        f"{_flops_times(of, base)}, {_cache_times(of, base)}"
        for name, of in zip(found.names, found.columns, strict=True)
        if of is not base
    ]
    return f"against {found.names[found.first]} at {several(found.context, 'token')}: {'; '.join(said)}"


def _times(value: int | None, base: int | None) -> str:
    return Quantity(value, "", versus=base).times or "-"


def _cache_times(of: Column, base: Column) -> str:
    if of.cache.bytes is None or base.cache.bytes is None:
        return "no cache" if of.cache.bytes is None else "and a cache"
    return f"{_times(of.cache.bytes, base.cache.bytes)} cache"


def _flops_times(of: Column, base: Column) -> str:
    """Of a token, or of a sequence where one of the two has no next token."""
    if of.token is None or base.token is None:
        return f"{_times(of.sequence.forward, base.sequence.forward)} FLOPs a sequence"
    return f"{_times(of.token.forward, base.token.forward)} FLOPs a token"


def _tables(found: Comparison) -> list[Table]:
    """One table a question; every model but the baseline has ratios to it."""
    pages = [sheets(of, found.dtype) for of in found.columns]
    base = pages[found.first]
    estimates = statuses(*((of.token, of.sequence) for of in found.columns))
    return [
        side_by_side(
            title,
            found.names,
            [page[title] if page is base else compared(page[title], base[title]) for page in pages],
            strong=STRONG.get(title),
            others=estimates if title == "forward FLOPs" else None,
        )
        for title in base
    ]


def _data(found: Comparison) -> dict[str, Any]:
    rows = [data(of) for of in found.columns]
    named = list(zip(found.names, rows, strict=True))
    return {
        "schema": "costcalc.compare/1",
        "costcalc_version": __version__,
        "baseline": found.names[found.first],
        "context": found.context,
        "memory_tokens": found.memory_tokens,
        "dtype": found.dtype,
        "models": [{"model": name, **row} for name, row in named],
        "ratios": [{"model": name, **ratios(row, rows[found.first])} for name, row in named],
    }
