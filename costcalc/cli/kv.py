"""`costcalc kv`: the memory that requests hold between two tokens."""

from __future__ import annotations

from typing import Any

from costcalc.architecture import Architecture
from costcalc.calculators.kv_cache import KVCache, kv_cache
from costcalc.cli.emit import emit
from costcalc.cli.models import beyond_table, column_names, context_of, header, load_all, one_or_many, with_note
from costcalc.cli.options import Batch, Context, Debug, Dtype, Format, Json, Models, Output, Version
from costcalc.dtypes import canonical_dtype
from costcalc.report import Cell, Quantity, Report, side_by_side
from costcalc.units import human, parse_length, several


def run(
    models: Models,
    context: Context = None,
    batch: Batch = "1",
    dtype: Dtype = "bf16",
    form: Format = None,
    as_json: Json = False,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> None:
    """KV-cache memory at a context, and what the next token adds.

    Exact: what the maths needs, not what an engine reserves in pages; a window layer holds min(context, window).
    """
    del version, debug
    dtype = canonical_dtype(dtype)
    sequences = parse_length(batch, name="--batch")
    loaded = load_all(models)
    lengths = [
        context_of(model, option="--context") if context is None else parse_length(context, name="--context")
        for model in loaded
    ]
    held = [
        kv_cache(model.inventory, tokens, batch=sequences, dtype=dtype)
        for model, tokens in zip(loaded, lengths, strict=True)
    ]
    names = column_names(loaded)
    sheets = [_sheet(cache, tokens) for cache, tokens in zip(held, lengths, strict=True)]
    notes = [f"{several(sequences, 'sequence')}, {dtype}; exact, before an engine's paging"]
    notes += [note for pair in zip(loaded, lengths, strict=True) for note in [beyond_table(*pair)] if note]
    report = Report(
        title="; ".join(
            f"{name}: {human(cache.bytes, 'bytes')} at {several(tokens, 'token')}"
            for name, cache, tokens in zip(names, held, lengths, strict=True)
        ),
        tables=(side_by_side("KV cache", names, sheets, strong="cache"),),
        notes=tuple(notes),
        data=one_or_many(
            [_data(model, n, sequences, dtype, kv) for model, n, kv in zip(loaded, lengths, held, strict=True)]
        ),
    )
    emit(report, form=form, as_json=as_json, output=output)


def _sheet(cache: KVCache, context: int) -> dict[str, Cell]:
    sheet: dict[str, Cell] = {
        "context": Quantity(context, "tokens"),
        "cache": Quantity(cache.bytes, "bytes"),
        "next token adds": Quantity(cache.bytes_per_token, "bytes"),
        "keys and values": Quantity(cache.elements, "elements"),
    }
    if cache.cross_elements:
        sheet["cross keys and values"] = Quantity(cache.cross_elements, "elements")
    if cache.state_elements:
        sheet["constant state"] = Quantity(cache.state_elements, "elements")
    return sheet


def _data(model: Architecture, context: int, batch: int, dtype: str, cache: KVCache) -> dict[str, Any]:
    data = {
        **header("kv", model),
        "context": context,
        "memory_tokens": 0,
        "batch": batch,
        "dtype": dtype,
        "kv_cache_elements": cache.elements,
        "cross_cache_elements": cache.cross_elements,
        "state_elements": cache.state_elements,
        "kv_cache_bytes": cache.bytes,
        "kv_bytes_per_token": cache.bytes_per_token,
        "state_bytes": cache.state_bytes,
    }
    return with_note(data, beyond_table(model, context))
