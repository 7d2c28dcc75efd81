"""`costcalc kv`: the memory that requests hold between two tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from costcalc.calculators.kv_cache import KVCache, kv_cache, layer_caches, without_windows
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
    one_or_many,
    with_note,
)
from costcalc.cli.options import (
    Batch,
    Context,
    Debug,
    Decompressed,
    Dtype,
    Explain,
    Format,
    Json,
    MemoryTokens,
    Models,
    NoWindows,
    Output,
    ReadAs,
    Version,
)
from costcalc.cli.recurrent import cache_rows, states_note
from costcalc.dtypes import canonical_dtype
from costcalc.errors import CostcalcError
from costcalc.inventory import Inventory, Workload
from costcalc.report import Cell, Quantity, Ratio, Report, Row, Table, side_by_side
from costcalc.units import human, parse_length, several

if TYPE_CHECKING:
    from costcalc.architecture import Architecture


@dataclass(frozen=True, slots=True)
class Held:
    """What the requests of one model hold, and the question."""

    model: Architecture
    context: int
    memory_tokens: int
    batch: int
    dtype: str
    cache: KVCache
    inventory: Inventory
    way: str

    def figures(self) -> Any:
        """The working of every number."""
        from costcalc.calculators.workings import cache_figures  # noqa: PLC0415 - only --explain needs it

        return cache_figures(
            self.inventory,
            self.context,
            batch=self.batch,
            memory_tokens=self.memory_tokens,
            dtype=self.dtype,
        )


def run(
    models: Models,
    context: Context = None,
    memory_tokens: MemoryTokens = None,
    batch: Batch = "1",
    dtype: Dtype = "bf16",
    no_windows: NoWindows = False,
    decompressed: Decompressed = False,
    explain: Explain = False,
    read_as: ReadAs = None,
    form: Format = None,
    as_json: Json = False,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> None:
    """KV-cache memory at a context, and what the next token adds.

    Exact: what the maths needs, not what an engine reserves in pages; a window layer holds min(context, window), latent
    attention one latent a token. Recurrent layers hold a state that does not grow, apart from the rest. An
    encoder-decoder also holds keys and values of its --memory-tokens, once; an encoder alone keeps nothing.
    """
    del version, debug
    dtype, sequences = canonical_dtype(dtype), parse_length(batch, name="--batch")
    loaded = load_all(models, read_as)
    memories = memory_for(loaded, memory_tokens)
    check_holding(loaded, no_windows=no_windows, decompressed=decompressed)
    found = []
    for model, memory in zip(loaded, memories, strict=True):
        tokens = context_or_own(model, context)
        inventory, way = holding(model.inventory, no_windows=no_windows, decompressed=decompressed)
        cache = kv_cache(inventory, tokens, batch=sequences, memory_tokens=memory, dtype=dtype)
        found.append(Held(model, tokens, memory, sequences, dtype, cache, inventory, way))
    names = column_names([each.model for each in found])
    if explain:
        report = explain_numbers(names, [each.figures() for each in found], [_data(each) for each in found])
    else:
        report = _report(names, found)
    emit(report, form=form, as_json=as_json, output=output)


def check_holding(models: list[Architecture], *, no_windows: bool, decompressed: bool) -> None:
    """Options that no model reads are refused."""
    names = " and ".join(column_names(models))
    if decompressed and not any(model.inventory.decompressed != model.inventory for model in models):
        raise CostcalcError(
            f"no latent attention in {names}: --decompressed is for that", hint="leave --decompressed out"
        )
    if no_windows and not any(without_windows(model.inventory) != model.inventory for model in models):
        raise CostcalcError(
            f"no layer of {names} has a window or chunk: --no-windows is for those", hint="leave it out"
        )


def holding(inventory: Inventory, *, no_windows: bool, decompressed: bool) -> tuple[Inventory, str]:
    """What is held in another way than the maths needs, and that way."""
    said = []
    if decompressed and inventory.decompressed != inventory:
        inventory = inventory.decompressed
        said.append("keys and values of every head, not latents (--decompressed)")
    if no_windows and without_windows(inventory) != inventory:
        inventory = without_windows(inventory)
        said.append("the whole context in every layer (--no-windows)")
    return inventory, " and ".join(said)


def _report(names: list[str], found: list[Held]) -> Report:
    first = found[0]
    kept = any(each.model.inventory.has_cache for each in found)
    notes = [f"{several(first.batch, 'sequence')}, {first.dtype}; exact, before an engine's paging"] if kept else []
    notes += [f"{each.model.name} holds {each.way}" for each in found if each.way]
    notes += [note for each in found for note in [states_note(each.model.name, each.inventory, each.dtype)] if note]
    notes += [note for each in found for note in [family_note(each.model, each.memory_tokens), _beyond(each)] if note]
    layers = [_by_layers(name if len(found) > 1 else "", each) for name, each in zip(names, found, strict=True)]
    return Report(
        title="; ".join(f"{name}: {_answer(each)}" for name, each in zip(names, found, strict=True)),
        tables=(
            side_by_side("KV cache", names, [_sheet(each) for each in found], strong="cache"),
            *[table for table in layers if table is not None],
        ),
        notes=tuple(notes),
        data=one_or_many([_data(each) for each in found]),
    )


def _answer(each: Held) -> str:
    if each.cache.bytes is None:
        return "no cache"
    beside = f" and {several(each.memory_tokens, 'encoder token')}" if each.memory_tokens else ""
    return f"{human(each.cache.bytes, 'bytes')} at {several(each.context, 'token')}{beside}"


def _beyond(each: Held) -> str | None:
    return beyond_table(each.model, each.context, each.memory_tokens)


def _sheet(each: Held) -> dict[str, Cell]:
    cache = each.cache
    sheet: dict[str, Cell] = {
        "context": Quantity(each.context, "tokens"),
        **({"encoder tokens": Quantity(each.memory_tokens, "tokens")} if each.memory_tokens else {}),
        "cache": Quantity(cache.bytes, "bytes"),
        **cache_rows(cache),
        "next token adds": Quantity(cache.bytes_per_token, "bytes"),
        "keys and values": Quantity(cache.elements, "elements"),
    }
    if cache.cross_elements:
        sheet["cross keys and values"] = Quantity(cache.cross_elements, "elements")
    if cache.state_elements:
        sheet["constant state"] = Quantity(cache.state_elements, "elements")
    return sheet


def _by_layers(name: str, each: Held) -> Table | None:
    """What each kind of layer holds, where they differ."""
    now = Workload(batch=each.batch, new_tokens=each.context, memory_tokens=each.memory_tokens)
    found = layer_caches(each.inventory, now)
    if not found:
        return None
    all_of = sum(held.elements for held in found.values())
    has_state = any(held.state_elements for held in found.values())
    rows = []
    for group, held in found.items():
        tokens = (
            "a state" if held.elements and held.elements == held.state_elements else Quantity(held.tokens, "tokens")
        )
        cells = (Quantity(held.layers, "layers"), tokens, Quantity(held.elements, "elements"))
        state = (Quantity(held.state_elements, "elements"),) if has_state else ()
        rows.append(Row(group, (*cells, *state, Ratio(held.elements, all_of, "bar"))))
    columns = ("layers", "tokens held by each", "elements", *["constant"] * has_state, "share")
    return Table(f"{name}: by layers" if name else "by layers", columns, tuple(rows), status="exact")


def _data(each: Held) -> dict[str, Any]:
    cache = each.cache
    data = {
        **header("kv", each.model),
        "context": each.context,
        "memory_tokens": each.memory_tokens,
        "batch": each.batch,
        "dtype": each.dtype,
        "kv_cache_elements": cache.elements,
        "cross_cache_elements": cache.cross_elements,
        "state_elements": cache.state_elements,
        "kv_cache_bytes": cache.bytes,
        "kv_bytes_per_token": cache.bytes_per_token,
        "state_bytes": cache.state_bytes,
    }
    if each.way:
        data["holds"] = each.way
    return with_note(data, family_note(each.model, each.memory_tokens), _beyond(each))
