"""How much of a model is run: so many tokens, windows that bind, one arena, and what is too large."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from costcalc.architecture import Architecture
from costcalc.errors import CostcalcError
from costcalc.inventory import Weight, Workload
from costcalc.reference import Arena
from costcalc.reference.arrays import Fields

TOKENS = 11
"""New tokens of the prefill: a prime, so that no other size is taken for it."""
WINDOW = 5
"""A window that binds within TOKENS, in place of one that would not."""
LARGEST_ARENA = 2**28
"""Elements, 1 GiB: of a larger matrix that many columns are multiplied at a time."""
TABLE_ROWS = 512
"""Of a vocabulary's table at least so many rows are held, where it has them: more than one, so that words differ."""
LARGEST_ACTIVATIONS = 2**27
"""Numbers of all tokens on the wider side of a matrix, 512 MiB; several such arrays are alive at once."""
MOST_FLOPS = 10**15
"""Of the prefill: some ten hours at 30 GFLOP/s, a hundred times llama-3.1-405b."""


def tokens_for(arch: Architecture) -> int:
    """TOKENS, or as many as the position table has rows."""
    return min(TOKENS, arch.longest() or TOKENS)


def binding(fields: Fields, tokens: int) -> tuple[Fields, dict[int, int]]:
    """The fields with every window that would not bind within `tokens` made smaller, and what was made of which."""
    binds, replaced = min(WINDOW, max(tokens - 1, 1)), {}
    for layer in written_layers(fields["decoder"]["layers"]):
        attention = layer["attention"] or {}
        window = attention.get("window")
        if window is not None and window >= tokens and window != binds:
            replaced[window] = attention["window"] = binds
    return fields, dict(sorted(replaced.items()))


def written_layers(entries: list[Fields]) -> Iterator[Fields]:
    """Each layer as often as it was written: a repeated one once."""
    for entry in entries:
        if "pattern" in entry:
            yield from written_layers(entry["pattern"])
        else:
            yield entry


def arena_for(model: Architecture) -> Arena:
    """As large as the largest parameter, of a table TABLE_ROWS rows, as far as LARGEST_ARENA allows."""
    largest = max(_held(weight) for weight in model.inventory.weights)
    return Arena(min(largest, LARGEST_ARENA), deviation=float(model.d_model) ** -0.5)


def _held(weight: Weight) -> int:
    rows, *width = weight.axes.values()
    return (min(rows, TABLE_ROWS) if weight.table else rows) * prod(width)


def refuse_too_large(arch: Architecture) -> None:
    """Raise `CostcalcError` where a pass of `arch` would take many hours, or activations of many gigabytes."""
    tokens, inventory = tokens_for(arch), arch.inventory
    flops = sum(matmul.flops(Workload(new_tokens=tokens)) for matmul in inventory.matmuls)
    multiplied = {matmul.of for matmul in inventory.matmuls}
    widest = max(_width(weight) for weight in inventory.weights if weight.path in multiplied)
    if flops > MOST_FLOPS or tokens * widest > LARGEST_ACTIVATIONS:
        raise CostcalcError(
            f"{arch.name} is too large to run here: {flops:,} FLOPs for {tokens} tokens, {widest:,} numbers for each",
            hint="verify a copy with fewer layers, a smaller vocabulary or smaller widths",
        )


def _width(weight: Weight) -> int:
    """Numbers that one token has on the wider side of a matrix."""
    models = [size for letter, size in weight.axes.items() if letter in "DW"]
    return max(*models, prod(weight.axes.values()) // prod(models))
