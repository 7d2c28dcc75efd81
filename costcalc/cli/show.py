"""`costcalc show`: one page on a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from costcalc.calculators.attention import passes
from costcalc.calculators.components import sum_by_component
from costcalc.calculators.conventions import six_nd
from costcalc.calculators.flops import Flops, flops
from costcalc.calculators.kv_cache import KVCache, kv_cache
from costcalc.calculators.parameters import HELD, Parameters, parameters
from costcalc.calculators.rule_of_thumb import RuleOfThumb, rule_of_thumb
from costcalc.cli.column import compute, held, next_token, statuses
from costcalc.cli.described import described
from costcalc.cli.emit import emit
from costcalc.cli.models import (
    beyond_table,
    column_names,
    context_or_own,
    explain_numbers,
    family_note,
    header,
    load_all,
    memory_for,
    not_counted,
    one_or_many,
    with_note,
)
from costcalc.cli.options import (
    Context,
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
from costcalc.cli.params import published_note, totals
from costcalc.cli.recurrent import scan_data, scans_note
from costcalc.dtypes import canonical_dtype
from costcalc.report import Cell, Quantity, Ratio, Report, Table, side_by_side, with_shares
from costcalc.units import grouped, human, several

if TYPE_CHECKING:
    from costcalc.architecture import Architecture

OVER = "  over 6·N·D"
ACTIVE = ", active parameters"


@dataclass(frozen=True, slots=True)
class Page:
    """Every number of one model's page."""

    model: Architecture
    context: int
    memory_tokens: int
    dtype: str
    counted: Parameters
    token: Flops | None
    sequence: Flops
    cache: KVCache
    rule: RuleOfThumb

    @property
    def six_nd(self) -> int:
        """6·N·D for one sequence of the context's length, N the active parameters of a mixture."""
        return six_nd(self.counted, self.context)

    def figures(self) -> Any:
        """The working of every number."""
        from costcalc.cli.pages import page_figures  # noqa: PLC0415 - only --explain needs it

        return page_figures(self.model.inventory, self.context, self.dtype, memory_tokens=self.memory_tokens)


def run(
    models: Models,
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
    """One page: what the model is, its parameters, FLOPs per token, attention share, KV cache, and what was derived."""
    del version, debug
    dtype = canonical_dtype(dtype)
    loaded = load_all(models, read_as)
    memories = memory_for(loaded, memory_tokens)
    pages = [_page(model, context, memory, dtype) for model, memory in zip(loaded, memories, strict=True)]
    names = column_names([page.model for page in pages])
    if explain:
        report = explain_numbers(names, [page.figures() for page in pages], [_data(page) for page in pages])
    else:
        report = _report(names, pages)
    emit(report, form=form, as_json=as_json, output=output)


def _report(names: list[str], pages: list[Page]) -> Report:
    dtype = pages[0].dtype
    tables = [
        side_by_side("model", names, [described(page.model) for page in pages], status=""),
        side_by_side("parameters", names, [totals(page.counted) for page in pages], strong="total"),
        *_by_component(names, pages),
        side_by_side(
            "forward FLOPs",
            names,
            [_compute(page) for page in pages],
            strong="next token",
            others={
                OVER: "estimate",
                f"{OVER}{ACTIVE}": "estimate",
                **statuses(*((page.token, page.sequence) for page in pages)),
            },
        ),
        side_by_side(f"KV cache, {dtype}", names, [held(page.cache) for page in pages], strong="at the context"),
        side_by_side("rule of thumb", names, [_thumb(page.rule) for page in pages], status="estimate"),
    ]
    return Report(
        title="; ".join(_answer(name, page) for name, page in zip(names, pages, strict=True)),
        tables=tuple(tables),
        notes=tuple(dict.fromkeys(note for page in pages for note in _notes(page))),
        data=one_or_many([_data(page) for page in pages]),
    )


def _page(model: Architecture, context: str | None, memory_tokens: int, dtype: str) -> Page:
    tokens, inventory = context_or_own(model, context), model.inventory
    last, whole = passes(tokens, memory_tokens=memory_tokens)
    return Page(
        model=model,
        context=tokens,
        memory_tokens=memory_tokens,
        dtype=dtype,
        counted=parameters(inventory),
        token=flops(inventory, last) if inventory.has_cache else None,
        sequence=flops(inventory, whole),
        cache=kv_cache(inventory, tokens, memory_tokens=memory_tokens, dtype=dtype),
        rule=rule_of_thumb(inventory),
    )


def _answer(name: str, page: Page) -> str:
    beside = f" and {several(page.memory_tokens, 'encoder token')}" if page.memory_tokens else ""
    tokens = f"{several(page.context, 'token')}{beside}"
    said = f"{name}: {grouped(page.counted.total)} parameters"
    if page.token is None or page.cache.bytes is None:
        return f"{said}, {human(page.sequence.forward, 'FLOPs')} for {tokens} at once, no cache"
    flops_said, held_said = human(page.token.forward, "FLOPs"), human(page.cache.bytes, "bytes")
    return f"{said}, {flops_said} a token and {held_said} of cache at {tokens}"


def _by_component(names: list[str], pages: list[Page]) -> list[Table]:
    if len(pages) > 1:
        return []
    count, inventory = pages[0].counted, pages[0].model.inventory
    amounts = [(w.path, w.parameters) for w in count.components if w.role in HELD]
    return [with_shares("by component", names[0], sum_by_component(amounts, inventory), "parameters")]


def _compute(page: Page) -> dict[str, Cell]:
    memory = {"encoder tokens": Quantity(page.memory_tokens, "tokens")} if page.memory_tokens else {}
    sheet = {"at context": Quantity(page.context, "tokens"), **memory, **compute(page.token, page.sequence)}
    if page.sequence.train is not None:
        of = "" if page.counted.active == page.counted.total else ACTIVE
        sheet[f"{OVER}{of}"] = Ratio(page.sequence.train, page.six_nd)
    return sheet


def _thumb(rule: RuleOfThumb) -> dict[str, Cell]:
    return {
        "matrices of the layers": Quantity(rule.layer_parameters, "parameters"),
        "vocabulary tables": Quantity(rule.embedding_parameters, "parameters"),
        "both": Quantity(rule.total_parameters, "parameters"),
        "forward, 2 FLOPs a weight": Quantity(rule.forward_flops_per_token, "FLOPs"),
        "16-bit cache a token": Quantity(rule.kv_bytes_per_token, "bytes"),
    }


def _notes(page: Page) -> list[str]:
    found = [
        published_note(page.model, page.counted),
        not_counted(page.model),
        family_note(page.model, page.memory_tokens),
        scans_note(page.model.name, page.model.inventory, passes(page.context)[1]),
        _beyond(page),
    ]
    derived = list(page.model.derived_facts())
    if derived:
        found.append(f"{page.model.name} derives: {'; '.join(derived)}")
    return [
        *[note for note in found if note],
        "exact but for the rule of thumb, which leaves out norms, biases, positions, head and attention core",
    ]


def _beyond(page: Page) -> str | None:
    return beyond_table(page.model, page.context, page.memory_tokens)


def _data(page: Page) -> dict[str, Any]:
    data = {
        **header("show", page.model),
        "source": page.model.source,
        "published_parameters": page.model.published_parameters,
        "what": described(page.model),
        "derived": list(page.model.derived_facts()),
        "total_parameters": page.counted.total,
        "embedding_parameters": page.counted.embedding,
        "non_embedding_parameters": page.counted.non_embedding,
        "context": page.context,
        "memory_tokens": page.memory_tokens,
        **next_token(page.token),
        "sequence_forward_flops": page.sequence.forward,
        "sequence_attention_flops": page.sequence.attention,
        "sequence_train_flops": page.sequence.train,
        "sequence_6nd_flops": page.six_nd,
        "dtype": page.dtype,
        "kv_cache_bytes": page.cache.bytes,
        "kv_bytes_per_token": page.cache.bytes_per_token,
        **scan_data(page.token, page.sequence, page.cache),
        "rule_of_thumb": {
            "layer_parameters": page.rule.layer_parameters,
            "embedding_parameters": page.rule.embedding_parameters,
            "total_parameters": page.rule.total_parameters,
            "forward_flops_per_token": page.rule.forward_flops_per_token,
            "kv_bytes_per_token": page.rule.kv_bytes_per_token,
        },
    }
    return with_note(data, not_counted(page.model), family_note(page.model, page.memory_tokens), _beyond(page))
