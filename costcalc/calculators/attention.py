"""The quadratic part: what scores and weighted values cost at a context, and where they overtake the weights."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from costcalc.calculators.figure import Figure
from costcalc.calculators.flops import Flops, flops
from costcalc.calculators.search import first_true
from costcalc.calculators.terms import cached_term
from costcalc.calculators.workings import CORE, Figures, flop_figures, stored
from costcalc.expression import symbol
from costcalc.inventory import Cached, Inventory, Workload, group_of

SHARES = {"half_of_weights": (1, 2), "equal_to_weights": (1, 1)}
"""Core over weights: at a half the core is a third of the forward pass, at one a half of it."""
PASSES = ("next_token", "sequence")
STORED = "the scores of a layer, N a query and key, that an unfused softmax writes: Dao et al., arXiv 2205.14135"


@dataclass(frozen=True, slots=True)
class AttentionCost:
    """At one context: the next token's pass, the whole sequence's, and the score matrices that are never stored.

    next_token is None for an encoder alone, which has no next token. Of an encoder-decoder the context is the
    decoder's; the encoder runs in the whole sequence's pass, and in a next token's only if that is the first.

    The score matrices are those of one sequence, masked scores included: what an unfused kernel writes, layer by layer.
    FlashAttention (Dao et al., arXiv 2205.14135) holds none of them.
    """

    context: int
    next_token: Flops | None
    sequence: Flops
    score_bytes: int
    score_bytes_per_layer: int


def attention_cost(
    inventory: Inventory, context: int, *, memory_tokens: int = 0, counting: str = "attended", dtype: str = "bf16"
) -> AttentionCost:
    """The attention core of the token at the end of `context` tokens, and of the sequence as a whole."""
    last, whole = passes(context, memory_tokens=memory_tokens, counting=counting)
    figures = score_figures(inventory, context, dtype, memory_tokens=memory_tokens)
    return AttentionCost(
        context=context,
        next_token=flops(inventory, last) if inventory.has_cache else None,
        sequence=flops(inventory, whole),
        score_bytes=figures["score_matrix_bytes"].value,
        score_bytes_per_layer=figures["score_matrix_bytes_per_layer"].value,
    )


def passes(context: int, *, memory_tokens: int = 0, counting: str = "attended") -> tuple[Workload, Workload]:
    """The pass of the last token of a context, after all others; and that of the whole sequence at once."""
    return (
        Workload(new_tokens=1, past_tokens=context - 1, memory_tokens=memory_tokens, counting=counting),
        Workload(new_tokens=context, memory_tokens=memory_tokens, counting=counting),
    )


def passes_of(inventory: Inventory) -> tuple[str, ...]:
    """Those of PASSES that a model has: an encoder alone sees whole sequences only."""
    return PASSES if inventory.has_cache else PASSES[1:]


def attention_figures(
    inventory: Inventory, context: int, *, memory_tokens: int = 0, counting: str = "attended", dtype: str = "bf16"
) -> Figures:
    """The keys of `costcalc attention` at one context, the shares there, and where the core overtakes the weights."""
    asked = dict(zip(PASSES, passes(context, memory_tokens=memory_tokens, counting=counting), strict=True))
    found = passes_of(inventory)
    counted: Figures = {}
    for of in found:
        counted |= flop_figures(inventory, asked[of], prefix=f"{of}_")
    question = {"memory_tokens": memory_tokens, "counting": counting}
    crossings = [_crossing_figure(inventory, share, of, **question) for share in SHARES for of in found]
    shares = [_share_figure(counted, of) for of in found]
    return {
        **counted,
        **{figure.name: figure for figure in shares},
        **score_figures(inventory, context, dtype, memory_tokens=memory_tokens),
        **{figure.name: figure for figure in crossings if figure is not None},
    }


def _share_figure(counted: Figures, of: str) -> Figure:
    core, forward = counted[f"{of}_attention_flops"], counted[f"{of}_forward_flops"]
    both = {figure.name: figure for figure in (core, forward)}
    return Figure(f"{of}_attention_share", "", symbol(core.name) / symbol(forward.name), both, source=CORE)


def _crossing_figure(inventory: Inventory, share: str, of: str, **question: Any) -> Figure | None:
    found = crossing(inventory, share, of=of, **question)
    if found is None:
        return None
    prefix, workload = f"{share}_{of}_", passes(found, **question)[PASSES.index(of)]
    sides = flop_figures(inventory, workload, prefix=prefix)
    core, weights = sides[f"{prefix}attention_flops"], sides[f"{prefix}weight_flops"]
    words = f"the S from which on {core.name} >= {Fraction(*SHARES[share])} x {weights.name}"
    name = f"crossings.{share}_context.{of}"
    return Figure(name, "tokens", words=words, found=found, terms=(core, weights), source=CORE)


def score_figures(inventory: Inventory, context: int, dtype: str, *, memory_tokens: int = 0) -> Figures:
    """The bytes of the score matrices of one sequence: of all layers, and of the layer with the largest."""
    rectangle = Workload(new_tokens=context, memory_tokens=memory_tokens, counting="rectangle")
    # The scores of a layer are what its matmul makes: all its axes but the last, which is summed over. Kernels without
    # a window of their own write masked scores too.
    matrices = [
        Cached(m.path, dict(list(m.axes.items())[:-1]), m.times)
        for m in inventory.matmuls
        if m.role == "scores" and m.runs(rectangle)
    ]
    terms = [cached_term(matrix, rectangle) for matrix in matrices]
    groups = inventory.layers_of
    layers: dict[str | None, list[Figure]] = {}
    for matrix in matrices:  # of one layer: its self-attention's and its cross-attention's
        single = cached_term(matrix._replace(times=1), rectangle)
        layers.setdefault(group_of(matrix.path, groups), []).append(single.named(f"{single.name} of one layer"))
    largest = max(layers.values(), key=lambda some: sum(term.value for term in some), default=[])
    total = Figure("score_matrix_elements", "elements", terms=tuple(terms), source=STORED)
    one = Figure("score_matrix_elements_per_layer", "elements", terms=tuple(largest), source=STORED)
    return {
        "score_matrix_bytes": stored("score_matrix_bytes", total, dtype),
        "score_matrix_bytes_per_layer": stored("score_matrix_bytes_per_layer", one, dtype),
    }


def crossing(
    inventory: Inventory, share: str, *, of: str, memory_tokens: int = 0, counting: str = "attended"
) -> int | None:
    """The context from which on the core is as large as SHARES[share] of the weights; None if it never stays so.

    of: "next_token" (the pass of the last token) or "sequence" (all of it at once, so half the pairs a token). The pass
    that starts an encoder-decoder's request is no next token's. The core less the share is convex in the context: of a
    sequence beside a long encoder's text it may begin above, and fall before it rises for good.
    """
    part, whole = SHARES[share]
    index = PASSES.index(of)
    starts = of == "next_token" and inventory.needs_memory

    def above(context: int) -> int:
        counted = flops(inventory, passes(context, memory_tokens=memory_tokens, counting=counting)[index])
        return counted.attention * whole - counted.weights * part

    lowest = first_true(lambda context: above(context + 1) >= above(context)) if index and inventory.needs_memory else 1
    if lowest is None:
        return None
    begins = 1 if above(lowest) >= 0 else lowest
    return first_true(lambda context: context >= begins + starts and above(context) >= 0)
