"""Records as figures: the formula of a term is the record's own arithmetic, run on symbols instead of numbers.

So no formula of a tensor, a matmul or a cache is written a second time, and the text cannot drift from the count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from costcalc.calculators.figure import EXACT, MODELLED, Figure
from costcalc.expression import Expression, symbol
from costcalc.inventory import Cached, Extent, Matmul, Routed, Weight, Workload


@dataclass(frozen=True, slots=True)
class _Symbols:
    """A workload whose lengths are symbols: what an extent reads of it. A length of 0 stays 0, and drops out."""

    batch: Any
    new_tokens: Any
    past_tokens: Any
    memory_tokens: Any
    counting: str
    logits: str


def weight_term(weight: Weight, *, used: bool = False) -> Figure:
    """What all layers hold of one weight; `used`: what one token uses of it."""
    chosen = weight.used if used else None
    axes: dict[str, Any] = {}
    values: dict[str, int] = {"L": weight.times}
    for letter, size in {**weight.axes, **(chosen or {})}.items():
        name = letter if chosen is None or letter not in chosen else USED.get(letter, f"{letter}_used")
        axes[letter], values[name] = symbol(name), size
    formula = weight._replace(axes=axes, times=_layers(weight.times), used=None).parameters
    return _figure(weight.path, "parameters", formula, values, "").of("used" if chosen else "")


USED = {"E": "X", "E_unused": "X_unused"}
"""The letter of an axis that is replaced by how much of it one token uses."""


def matmul_term(matmul: Matmul, workload: Workload) -> Figure:
    """The FLOPs of one matrix product in one pass over the workload."""
    axes, values = _with_symbols(matmul.axes, matmul.times, workload.counting)
    lengths, given = _lengths(workload, "T")
    formula = matmul._replace(axes=axes, times=_layers(matmul.times)).flops(lengths)
    status = MODELLED if matmul.role == "scan" else EXACT
    return _figure(matmul.path, "FLOPs", formula, {**values, **given}, status)


def cached_term(cached: Cached, workload: Workload) -> Figure:
    """The elements that requests hold of one cached array, after `new_tokens` tokens of context S."""
    axes, values = _with_symbols(cached.axes, cached.times, workload.counting)
    lengths, given = _lengths(workload, "S")
    formula = cached._replace(axes=axes, times=_layers(cached.times)).elements(lengths)
    return _figure(cached.path, "elements", formula, {**values, **given}, EXACT)


def _layers(times: int) -> Any:
    """L stands for the layers that a term counts for; a single one is not written."""
    return 1 if times == 1 else symbol("L")


def _with_symbols(axes: Mapping[str, int | Extent], times: int, counting: str) -> tuple[dict[str, Any], dict[str, int]]:
    values = {letter: size for letter, size in axes.items() if not isinstance(size, Extent)}
    symbolic = {letter: size if isinstance(size, Extent) else symbol(letter) for letter, size in axes.items()}
    for letter, size in axes.items():
        if isinstance(size, Routed):
            name = USED["E"] if size.experts(counting) == size.chosen else "E"  # a kernel may be handed all of them
            x: Any = symbol(name)
            symbolic[letter] = Routed(size.rows, chosen=x)
            values[name] = size.experts(counting)
    return symbolic, {"L": times, **values}


def _lengths(workload: Workload, tokens: str) -> tuple[Any, dict[str, int]]:
    """The workload in symbols, and what each stands for."""
    past, memory = workload.past_tokens, workload.memory_tokens
    symbols = _Symbols(
        symbol("B"),
        symbol(tokens),
        symbol("p") if past else 0,
        symbol("M") if memory else 0,
        workload.counting,
        workload.logits,
    )
    return symbols, {"B": workload.batch, tokens: workload.new_tokens, "p": past, "M": memory}


def _figure(path: str, unit: str, formula: Any, values: Mapping[str, int], status: str) -> Figure:
    expression = formula if isinstance(formula, Expression) else Expression("number", formula)
    used = {name: values[name] for name in expression.symbols()}
    return Figure(path, unit, expression, used, status=status or EXACT)
