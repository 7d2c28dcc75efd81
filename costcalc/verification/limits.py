"""How much of a model is run: so many tokens, windows that bind, one arena, and what is too large."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from costcalc.architecture import Architecture
from costcalc.errors import CostcalcError
from costcalc.inventory import Weight, Workload, check_stated
from costcalc.reference import Arena
from costcalc.reference.arrays import Fields

TOKENS = 11
"""New tokens of the prefill: a prime, so that no other size is taken for it."""
MEMORY = 7
"""Tokens of an encoder's text, or of another model's, that a decoder looks at."""
WINDOW = 5
"""A window that binds within TOKENS and MEMORY, in place of one that would not."""
CHUNK = 7
"""A chunk that ends within TOKENS, and inside of which a decode step goes on; of a mixer too, in its chunked form."""
BLOCK, CHOSEN_BLOCKS = 3, 2
"""A block of keys, and how many are chosen: two of four of TOKENS, the last of which is not full."""
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


def memory_for(arch: Architecture) -> int:
    """MEMORY, or as many as the encoder's position table has rows; 0 where no layer looks at an encoder's tokens."""
    if not arch.inventory.takes_memory:
        return 0
    return min(MEMORY, arch.longest("encoder") or MEMORY) if arch.encoder is not None else MEMORY


def workload_for(arch: Architecture) -> Workload:
    """What a pass that starts a request is given."""
    return Workload(new_tokens=tokens_for(arch), memory_tokens=memory_for(arch))


def binding(fields: Fields, workload: Workload) -> tuple[Fields, dict[int, int]]:
    """The fields with every window or chunk that would not bind in this pass made smaller, and what became of which."""
    tokens = lengths(fields, workload)
    binds, replaced = min(_binding(tokens[name], causal=name == "decoder") for name in tokens), {}
    for name, length in tokens.items():
        for layer in written_layers(fields[name]["layers"]):
            attention = layer["attention"] or {}
            window, chunk = attention.get("window"), attention.get("chunk")
            if window is not None and window != binds and _is_loose(window, length, causal=name == "decoder"):
                replaced[window] = attention["window"] = binds
            chosen = attention.get("top_k")
            if chosen is not None and chosen != binds and _is_loose(chosen, length, causal=True):
                replaced[chosen] = attention["top_k"] = binds
            ends = min(CHUNK, max(length - 1, 1))
            if chunk is not None and chunk != ends and chunk >= length:
                replaced[chunk] = attention["chunk"] = ends
            kept = attention.get("keys")
            if kept is not None and kept >= length:
                replaced[kept] = attention["keys"] = max(min(WINDOW, length - 1), 1)
            choice = attention.get("block_choice") or {"block": 0, "blocks": 0}
            met = choice["block"] * choice["blocks"]
            if met >= length:
                replaced[met] = _chosen_sooner(choice, length)
            replaced.update(_entries_left_out(attention, length))
            for mixer in (layer["mixer"], layer["mixer_beside"]):
                taken = (mixer or {}).get("chunk")
                if taken is not None and taken != ends and taken >= length:
                    replaced[taken] = mixer["chunk"] = ends
    return fields, dict(sorted(replaced.items()))


def lengths(fields: Fields, workload: Workload) -> dict[str, int]:
    """The tokens of each stack there is."""
    if fields["encoder"] is None:
        return {"decoder": workload.new_tokens}
    if fields["decoder"] is None:
        return {"encoder": workload.new_tokens}
    return {"encoder": workload.memory_tokens, "decoder": workload.new_tokens}


def _binding(tokens: int, *, causal: bool) -> int:
    """WINDOW, or the largest that hides a token from another: of a decoder T - 1, of an encoder T - 2 to a side."""
    return min(WINDOW, max(tokens - 1, 1) if causal else 2 * max(tokens - 2, 0) + 1)


def _chosen_sooner(choice: Fields, tokens: int) -> int:
    """Fewer and smaller blocks, so that some are left out; how many keys those that are chosen hold."""
    blocks = min(choice["blocks"], CHOSEN_BLOCKS)
    choice["block"] = max(min(choice["block"], BLOCK, (tokens - 1) // blocks), 1)
    choice["blocks"], choice["local"] = blocks, min(choice["local"], blocks)
    keys: int = choice["block"] * blocks
    return keys


def _entries_left_out(attention: Fields, tokens: int) -> dict[int, int]:
    """Of the entries of a text a query meets one less, where its choice would leave none out."""
    compression = attention.get("compression") or {"choice": None}
    choice = compression["choice"]
    if choice is None or choice["entries"] < (made := tokens // compression["rate"]) or made < 2:
        return {}
    was, choice["entries"] = choice["entries"], made - 1
    return {was: made - 1}


def _is_loose(window: int, tokens: int, *, causal: bool) -> bool:
    return window >= tokens if causal else window // 2 >= tokens - 1


def written_layers(entries: list[Fields]) -> Iterator[Fields]:
    """Each layer as often as it was written: a repeated one once."""
    for entry in entries:
        if "pattern" in entry:
            yield from written_layers(entry["pattern"])
        else:
            yield entry


def arena_for(model: Architecture) -> Arena:
    """As large as the largest parameter, of a table TABLE_ROWS rows, as far as LARGEST_ARENA allows."""
    weights = [weight for weight in model.inventory.weights if weight.role != "extra"]
    largest = max(_held(weight) for weight in weights)
    return Arena(min(largest, LARGEST_ARENA), deviation=float(model.d_model) ** -0.5)


def _held(weight: Weight) -> int:
    rows, *width = _of_one_expert(weight).values()
    return (min(rows, TABLE_ROWS) if weight.table else rows) * prod(width)


def _of_one_expert(weight: Weight) -> dict[str, int]:
    """The axes of what is multiplied at a time; a router's E are columns like any other."""
    return {letter: size for letter, size in weight.axes.items() if weight.used is None or letter not in weight.used}


def refuse_too_large(arch: Architecture) -> None:
    """Raise `CostcalcError` where a pass of `arch` would take many hours, or many gigabytes, or is not stated."""
    workload, inventory = workload_for(arch), arch.inventory
    check_stated(inventory, of="flops")
    check_stated(inventory, of="cache")
    tokens = max(workload.new_tokens, workload.memory_tokens)
    flops = sum(matmul.flops(workload) for matmul in inventory.matmuls if matmul.runs(workload))
    multiplied = {matmul.of for matmul in inventory.matmuls}
    widest = max(_width(weight) for weight in inventory.weights if weight.path in multiplied)
    if flops > MOST_FLOPS or tokens * widest > LARGEST_ACTIVATIONS:
        raise CostcalcError(
            f"{arch.name} is too large to run here: {flops:,} FLOPs for {tokens} tokens, {widest:,} numbers for each",
            hint="verify a copy with fewer layers, a smaller vocabulary or smaller widths",
        )


def _width(weight: Weight) -> int:
    """Numbers that one token has on the wider side of a matrix."""
    sizes = _of_one_expert(weight)
    models = [size for letter, size in sizes.items() if letter in "DW"] or [next(iter(sizes.values()))]
    return max(*models, prod(sizes.values()) // prod(models))
