"""The numbers of one model that `costcalc compare` sets beside those of others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from costcalc.calculators.attention import passes
from costcalc.calculators.components import sum_by_component
from costcalc.calculators.flops import Flops, flops
from costcalc.calculators.kv_cache import KVCache, kv_cache
from costcalc.calculators.parameters import HELD, Parameters, parameters
from costcalc.cli.params import totals
from costcalc.cli.recurrent import modelled, scan_data, scan_row, state_row
from costcalc.dtypes import bytes_for
from costcalc.report import Cell, Quantity, Ratio

if TYPE_CHECKING:
    from costcalc.architecture import Architecture

WEIGHT_DTYPES = ("fp32", "bf16", "fp8", "q8_0", "q4_0")
Sheet = dict[str, Cell]
WITH_SCANS = (
    *("next token", "  attention core share"),
    *("whole sequence", "  attention core share of it", "training on it (3 x)"),
)
"""Rows whose numbers hold scans, where a model has them."""


@dataclass(frozen=True, slots=True)
class Column:
    """One model at a context.

    components: parameters of each part. token: FLOPs of the next token at the context, the last one that it holds; None
    for an encoder alone. sequence: of the whole context at once. cache: what one request holds then.
    """

    counted: Parameters
    components: dict[str, int]
    token: Flops | None
    sequence: Flops
    cache: KVCache

    @property
    def weights(self) -> dict[str, int]:
        """Bytes of all parameters, were each of them held in one dtype."""
        return {dtype: bytes_for(self.counted.total, dtype) for dtype in WEIGHT_DTYPES}


def column(model: Architecture, context: int, dtype: str, *, memory_tokens: int = 0) -> Column:
    """The model's numbers with `context` tokens, its cache in `dtype`."""
    inventory = model.inventory
    last, whole = passes(context, memory_tokens=memory_tokens)
    counted = parameters(inventory)
    held = [(weight.path, weight.parameters) for weight in counted.components if weight.role in HELD]
    return Column(
        counted=counted,
        components=sum_by_component(held, inventory),
        token=flops(inventory, last) if inventory.has_cache else None,
        sequence=flops(inventory, whole),
        cache=kv_cache(inventory, context, memory_tokens=memory_tokens, dtype=dtype),
    )


def sheets(of: Column, dtype: str) -> dict[str, Sheet]:
    """The rows of each table, by its title."""
    return {
        "parameters": totals(of.counted),
        "by component": {label: Quantity(amount, "parameters") for label, amount in of.components.items()},
        "forward FLOPs": compute(of.token, of.sequence),
        f"KV cache, {dtype}": held(of.cache),
        "weights": {name: Quantity(size, "bytes") for name, size in of.weights.items()},
    }


def held(cache: KVCache) -> Sheet:
    """What a request holds, and what its next token adds: also on the page of `costcalc show`."""
    return {
        "at the context": Quantity(cache.bytes, "bytes"),
        **state_row(cache.state_bytes),
        "next token adds": Quantity(cache.bytes_per_token, "bytes"),
    }


def compute(token: Flops | None, sequence: Flops) -> Sheet:
    """The next token's pass, where there is one, and the whole sequence's: also on the page of `costcalc show`."""
    next_token: Sheet = (
        {}
        if token is None
        else {
            "next token": Quantity(token.forward, "FLOPs"),
            "  of which weights": Quantity(token.weights, "FLOPs"),
            "  of which attention core": Quantity(token.attention, "FLOPs"),
            **scan_row(token),
            "  attention core share": Ratio(token.attention, token.forward, "percent"),
        }
    )
    sheet: Sheet = {
        **next_token,
        "whole sequence": Quantity(sequence.forward, "FLOPs"),
        "  attention core share of it": Ratio(sequence.attention, sequence.forward, "percent"),
    }
    if sequence.train is not None:
        sheet["training on it (3 x)"] = Quantity(sequence.train, "FLOPs")
    return sheet


def statuses(*pages: tuple[Flops | None, Flops]) -> dict[str, str]:
    """Of the rows of `compute`, whose numbers are not exact where some page has scans."""
    return modelled(WITH_SCANS, *(counted for page in pages for counted in page))


def compared(sheet: Sheet, base: Sheet) -> Sheet:
    """The same rows, each number beside that of another model."""
    rows = dict(sheet)
    for label, cell in sheet.items():
        other = base.get(label)
        if isinstance(cell, Quantity) and isinstance(other, Quantity):
            rows[label] = replace(cell, versus=other.value)
    return rows


def data(of: Column) -> dict[str, Any]:
    """The numbers under the keys that the other commands have for them."""
    return {
        "total_parameters": of.counted.total,
        "embedding_parameters": of.counted.embedding,
        "non_embedding_parameters": of.counted.non_embedding,
        "active_parameters": of.counted.active,
        "component_parameters": of.components,
        **next_token(of.token),
        "sequence_forward_flops": of.sequence.forward,
        "sequence_attention_flops": of.sequence.attention,
        "sequence_train_flops": of.sequence.train,
        "kv_cache_bytes": of.cache.bytes,
        "kv_bytes_per_token": of.cache.bytes_per_token,
        "weight_bytes": of.weights,
        **scan_data(of.token, of.sequence, of.cache),
    }


def next_token(token: Flops | None) -> dict[str, int | None]:
    """The keys of the next token's pass: also in the JSON of `costcalc show`."""
    return {
        "next_token_flops": None if token is None else token.forward,
        "next_token_weight_flops": None if token is None else token.weights,
        "next_token_attention_flops": None if token is None else token.attention,
    }


def ratios(numbers: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    """Each number over the base's, to six digits; null where the base has none, or nothing."""
    return {key: _ratio(value, base.get(key)) for key, value in numbers.items()}


def _ratio(value: Any, base: Any) -> Any:
    if isinstance(value, dict):
        return ratios(value, base)
    return float(f"{value / base:.6g}") if base and value is not None else None
